package cluster

import (
	"os"
	"strings"
	"testing"
)

const guarded = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]}
`

// TestLeave: a node is drained and leaves the cluster. Nothing of the cluster stays on the host, and the user's pod
// does.
func TestLeave(t *testing.T) {
	c := startControlPlane(t)
	n := c.startNode(t, "attic")
	const own = `{apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]}}`
	up := n.command("up", "-d", "-f", "-")
	up.Stdin = strings.NewReader(own)
	run(t, up)
	c.apply(t, web)
	c.apply(t, guarded)
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	c.kubectl(t, "rollout", "status", "daemonset/everywhere", "--timeout="+timeout.String())

	out, err := n.command("node", "drain", "--timeout", "3s").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "disruption budget") || !strings.Contains(string(out), "not ended within 3s") {
		t.Errorf("drain against a PodDisruptionBudget: %v\n%s", err, out)
	}
	c.kubectl(t, "delete", "poddisruptionbudget/web")
	if got := n.podrun(t, "node", "drain"); !strings.Contains(got, "ignoring the pods of DaemonSets: default/everywhere-") || !strings.HasSuffix(got, "node/attic drained\n") {
		t.Errorf("drain: %s", got)
	}
	if got := c.nodesOf(t, "app=web"); len(got) != 0 {
		t.Errorf("pods of the Deployment are on %v", got)
	}

	if out, err := n.command("node", "leave").CombinedOutput(); err == nil || !strings.Contains(string(out), "podrun node runs, but not as podrun-node.service") {
		t.Errorf("leave while podrun node runs: %v\n%s", err, out)
	}
	n.killAgent(t)
	if got := n.podrun(t, "node", "leave"); !strings.Contains(got, "an administrator completes that: kubectl delete node attic\n") {
		t.Errorf("leave: %s", got)
	}
	n.hasLeft(t, "pod/own\n")
	if out, err := n.command("node", "leave").CombinedOutput(); err == nil || !strings.Contains(string(out), "this host has not joined a cluster") {
		t.Errorf("leave again: %v\n%s", err, out)
	}
	c.kubectl(t, "delete", "node/attic")

	// Without the API server.
	other := c.startNode(t, "cellar")
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	other.killAgent(t)
	defer stopAPIServer(t)()
	if got := other.podrun(t, "node", "leave", "--force"); !strings.Contains(got, "kubectl delete node cellar\n") {
		t.Errorf("leave --force: %s", got)
	}
	other.hasLeft(t, "")
}

// hasLeft checks that a host has these pods, and nothing of a cluster.
func (n *node) hasLeft(t *testing.T, pods string) {
	t.Helper()
	if got := n.podrun(t, "get", "pods", "-A", "-o", "name"); got != pods {
		t.Errorf("the host has the pods %q, not %q", got, pods)
	}
	if got := n.podrun(t, "get", "configmaps,secrets,services", "-A", "-o", "name"); got != "" {
		t.Errorf("the host has %q", got)
	}
	for _, name := range []string{"node", "podnetwork.json"} {
		if _, err := os.Lstat(n.file("data/podrun/" + name)); !os.IsNotExist(err) {
			t.Errorf("the host has %s: %v", name, err)
		}
	}
}
