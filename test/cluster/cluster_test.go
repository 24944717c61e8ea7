package cluster

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestControlPlane: the control plane has what a new cluster of kubeadm has, so that a host can join
// with a bootstrap token and run pods.
func TestControlPlane(t *testing.T) {
	c := startControlPlane(t)
	t.Run("namespaces", func(t *testing.T) { testNamespaces(t, c) })
	t.Run("cluster-info", func(t *testing.T) { testClusterInfo(t, c) })
	t.Run("node", func(t *testing.T) { testNode(t, c) })
}

// testNamespaces: the namespaces exist; the version of the server is the client's.
func testNamespaces(t *testing.T, c *controlPlane) {
	const all = "namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n"
	if got := c.kubectl(t, "get", "namespaces", "-o", "name"); got != all {
		t.Errorf("namespaces: %q, want %q", got, all)
	}
	if got := c.kubectl(t, "get", "serviceaccounts", "-o", "name"); got != "serviceaccount/default\n" {
		t.Errorf("ServiceAccounts: %q", got)
	}
	if got := c.kubectl(t, "get", "endpointslices", "kubernetes", "-o", "jsonpath={.endpoints[*].addresses[*]}"); got != c.address {
		t.Errorf("the Service kubernetes leads to %q, want %q", got, c.address)
	}
	var versions struct{ ClientVersion, ServerVersion struct{ GitVersion string } }
	if err := json.Unmarshal([]byte(c.kubectl(t, "version", "-o", "json")), &versions); err != nil {
		t.Fatal(err)
	}
	if v := versions.ServerVersion.GitVersion; v != versions.ClientVersion.GitVersion || !strings.HasPrefix(v, "v1.") {
		t.Errorf("versions %+v", versions)
	}
}

// testClusterInfo does what kubeadm join does before it trusts the server: without credentials it
// reads cluster-info, and checks the token's signature and the hash of the certificate authority's
// key (kubernetes: cmd/kubeadm/app/discovery/token). It may read nothing else.
func testClusterInfo(t *testing.T, c *controlPlane) {
	const path = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	code, body := c.get(t, nil, path)
	var object struct{ Data map[string]string }
	if err := json.Unmarshal(body, &object); code != http.StatusOK || err != nil {
		t.Fatalf("code %d, %v\n%s", code, err, body)
	}
	kubeconfig, signature := object.Data["kubeconfig"], object.Data["jws-kubeconfig-"+tokenID]
	if kubeconfig != c.clusterInfo() {
		t.Errorf("cluster-info is\n%s", kubeconfig)
	}
	if header, _, ok := strings.Cut(signature, ".."); !ok || signature != sign(header, kubeconfig) {
		t.Errorf("the signature is %q, want %q", signature, sign(header, kubeconfig))
	}
	ca := authorityOf(t, kubeconfig)
	if got, want := publicKeyHash(ca), publicKeyHash(c.ca.certificate); got != want {
		t.Errorf("the hash of the key is %s, want %s", got, want)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	if code, body := c.get(t, pool, path); code != http.StatusOK {
		t.Errorf("with the certificate authority: code %d\n%s", code, body)
	}
	if code, _ := c.get(t, pool, "/api/v1/namespaces/kube-public/configmaps"); code != http.StatusForbidden {
		t.Errorf("other ConfigMaps: code %d, want %d", code, http.StatusForbidden)
	}
}

// get reads path without credentials.
func (c *controlPlane) get(t *testing.T, pool *x509.CertPool, path string) (code int, body []byte) {
	t.Helper()
	response, err := c.anonymous(pool).Get(c.server() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// sign returns a JSON Web Signature without its payload, made with the token's secret (RFC 7515,
// appendix F).
func sign(header, payload string) string {
	mac := hmac.New(sha256.New, []byte(tokenSecret))
	io.WriteString(mac, header+"."+base64.RawURLEncoding.EncodeToString([]byte(payload)))
	return header + ".." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// authorityOf returns the certificate authority in a kubeconfig file.
func authorityOf(t *testing.T, kubeconfig string) *x509.Certificate {
	t.Helper()
	_, data, _ := strings.Cut(kubeconfig, "certificate-authority-data: ")
	data, _, _ = strings.Cut(data, "\n")
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no certificate in %q", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// testNode joins a node as kubelet does, without a program that runs pods: with the token it gets a
// certificate, with that it gets the next one and registers the node, ready. It may not register another
// node. The scheduler assigns a pod to the node.
func testNode(t *testing.T, c *controlPlane) {
	const name = "joined"
	c.requestCertificate(t, name, "--token="+token, "--kubeconfig="+c.file("cluster-info"))
	asNode := "--kubeconfig=" + c.writeKubeconfig(t, name)
	c.requestCertificate(t, name, asNode)

	node := func(name string) string {
		return `{apiVersion: v1, kind: Node, metadata: {name: ` + name + `},
			status: {conditions: [{type: Ready, status: "True"}], allocatable: {pods: "1"}}}`
	}
	c.apply(t, node(name), asNode)
	cmd := c.kubectlCommand("create", "-f", "-", asNode)
	cmd.Stdin = strings.NewReader(node("other"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `node "joined" is not allowed to modify node "other"`) {
		t.Errorf("another node: %v\n%s", err, out)
	}
	c.apply(t, "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: none}]}}")
	c.kubectl(t, "wait", "--for=jsonpath={.spec.nodeName}="+name, "pod/pod", "--timeout="+timeout.String())
}

// requestCertificate makes NAME.key and NAME.crt: a key, and a certificate for the node with that
// name. args are credentials.
func (c *controlPlane) requestCertificate(t *testing.T, name string, args ...string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.kubectlCommand(append([]string{"create", "-o", "name", "-f", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {generateName: %s-}
spec:
  signerName: kubernetes.io/kube-apiserver-client-kubelet
  usages: [digital signature, client auth]
  request: %s
`, name, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))))
	request := strings.TrimSpace(run(t, cmd))
	const certificate = "jsonpath={.status.certificate}"
	c.kubectl(t, append([]string{"wait", request, "--for=" + certificate, "--timeout=" + timeout.String()}, args...)...)
	text, err := base64.StdEncoding.DecodeString(c.kubectl(t, append([]string{"get", request, "-o", certificate}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, c.file(name+".key"), key)
	writeFile(t, c.file(name+".crt"), text)
}
