package cluster

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

//go:embed testdata/joining.yaml
var joining string

// The bootstrap token of joining.yaml.
const (
	tokenID     = "abcdef"
	tokenSecret = "0123456789abcdef"
	token       = tokenID + "." + tokenSecret
)

// permitJoining creates what kubeadm init creates for nodes that join with the token, and waits until
// the ConfigMap cluster-info has the token's signature.
func (c *controlPlane) permitJoining(t *testing.T) {
	t.Helper()
	c.apply(t, joining)
	writeFile(t, c.file("cluster-info"), []byte(c.clusterInfo()))
	c.kubectl(t, "create", "configmap", "cluster-info", "-n", "kube-public", "--from-file=kubeconfig="+c.file("cluster-info"))
	c.kubectl(t, "wait", "--for=jsonpath={.data.jws-kubeconfig-"+tokenID+"}", "configmap/cluster-info", "-n", "kube-public", "--timeout="+timeout.String())
}

// forbidJoining removes what permitJoining has created.
func (c *controlPlane) forbidJoining(t *testing.T) {
	t.Helper()
	cmd := c.kubectlCommand("delete", "-f", "-")
	cmd.Stdin = strings.NewReader(joining)
	run(t, cmd)
	c.kubectl(t, "delete", "configmap", "cluster-info", "-n", "kube-public")
}

// permitNetwork permits nodes to read what Services and pods of other nodes need.
func (c *controlPlane) permitNetwork(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create", "clusterrole", "podrun-peers", "--verb=list,watch", "--resource=nodes")
	c.kubectl(t, "create", "clusterrolebinding", "podrun-peers", "--clusterrole=podrun-peers", "--group=system:nodes")
	c.kubectl(t, "create", "clusterrolebinding", "podrun-nodes", "--clusterrole=system:node-proxier", "--group=system:nodes")
}

// clusterInfo returns the kubeconfig file in the ConfigMap cluster-info, in the form that kubeadm
// writes: without users and contexts.
func (c *controlPlane) clusterInfo() string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: ""
contexts: null
current-context: ""
kind: Config
preferences: {}
users: null
`, base64.StdEncoding.EncodeToString(encodeCertificate(c.ca.certificate)), c.server())
}
