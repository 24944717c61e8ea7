package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	podrunEnv = "PODRUN_CLUSTER_PODRUN" // the built binary
	rootfsEnv = "PODRUN_CLUSTER_ROOTFS" // the root file system of the example image
	image     = "localhost/podrun-example:1"
)

// A node is a host that podrun node has joined to a cluster. It has directories of its own, so that several nodes
// fit on one host.
type node struct {
	*controlPlane
	t         *testing.T // the agent runs until it ends
	name, dir string
	args      []string
	agent     *process
}

// startNode joins a node, and waits until it is ready. args are those of podrun node.
func (c *controlPlane) startNode(t *testing.T, name string, args ...string) *node {
	t.Helper()
	n := &node{controlPlane: c, t: t, name: name, dir: filepath.Join(c.dir, name)}
	for _, dir := range []string{n.dir, n.file("run")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n.podrun(t, "image", "import", os.Getenv(rootfsEnv), image)
	c.ca.issueClient(t, name, "system:node:"+name, "system:nodes")
	n.args = append([]string{"node", "--kubeconfig", c.writeKubeconfig(t, name), "--node-name", name, "--port", "0"}, args...)
	t.Cleanup(func() { // after the agent has ended, whose cleanup is later
		run(t, n.command("down", "--all", "-A", "--grace-period", "0"))
	})
	n.startAgent()
	c.kubectl(t, "wait", "--for=create", "node/"+name, "--timeout="+timeout.String())
	c.kubectl(t, "wait", "--for=condition=Ready", "node/"+name, "--timeout="+timeout.String())
	return n
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

func (n *node) startAgent() {
	n.t.Helper()
	n.agent = startProcess(n.t, n.command(n.args...), n.file("agent.log"))
}

// killAgent kills the agent. Its pods keep running.
func (n *node) killAgent(t *testing.T) {
	t.Helper()
	if err := n.agent.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.agent.ended
}

// command returns a call of podrun on the node.
func (n *node) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv(podrunEnv), args...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "HOME="+n.dir, "XDG_RUNTIME_DIR="+n.file("run"), "XDG_DATA_HOME="+n.file("data"))
	return cmd
}

// podrun runs podrun on the node, and returns its standard output.
func (n *node) podrun(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, n.command(args...))
}

// containerIDs returns the IDs of all containers of the default namespace, by pod and container.
func (c *controlPlane) containerIDs(t *testing.T) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				ContainerStatuses []struct{ Name, ContainerID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(c.kubectl(t, "get", "pods", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, p := range list.Items {
		for _, s := range p.Status.ContainerStatuses {
			ids[p.Metadata.Name+"/"+s.Name] = s.ContainerID
		}
	}
	return ids
}

const web = `
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting}
data: {text: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: sesame}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: main
        image: ` + image + `
        command: [sh, -c, 'trap "exit 0" TERM; echo started $PASSWORD; while :; do sleep 1 & wait $!; done']
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: password, key: password}}}]
        volumeMounts: [{name: greeting, mountPath: /greeting}]
      volumes: [{name: greeting, configMap: {name: greeting}}]
`

// TestNode: an ordinary user's host is a node of a real Kubernetes.
func TestNode(t *testing.T) {
	c := startControlPlane(t)
	n := c.startNode(t, "attic", "--node-labels", "place=attic")
	if got := c.kubectl(t, "get", "nodes", "-l", "place=attic,kubernetes.io/hostname=attic", "-o", "name"); got != "node/attic\n" {
		t.Errorf("nodes with its labels: %q", got)
	}
	c.apply(t, web)
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	t.Run("streams", func(t *testing.T) { testStreams(t, c) })
	t.Run("objects", func(t *testing.T) { testObjects(t, c) })
	t.Run("token", func(t *testing.T) { testToken(t, c) })
	t.Run("agent", func(t *testing.T) { testAgentKilled(t, c, n) })
	t.Run("admission", func(t *testing.T) { testAdmission(t, c) })
	t.Run("local pods", func(t *testing.T) { testLocalPods(t, c, n) })
	t.Run("delete", func(t *testing.T) { testDelete(t, c, n) })
}

// testStreams: kubectl reads logs and reaches into containers.
func testStreams(t *testing.T, c *controlPlane) {
	if got := c.kubectl(t, "logs", "deployment/web"); got != "started sesame\n" {
		t.Errorf("logs: %q", got)
	}
	cmd := c.kubectlCommand("exec", "-i", "deployment/web", "--", "sh", "-c", "cat; echo problem >&2; exit 3")
	cmd.Stdin = strings.NewReader("input\n")
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 3 || out.String() != "input\n" || !strings.HasPrefix(errors.String(), "problem\n") {
		t.Errorf("exec: %v, output %q, errors %q", err, &out, &errors)
	}
}

// testObjects: a changed ConfigMap reaches the volume of a running pod.
func testObjects(t *testing.T, c *controlPlane) {
	c.kubectl(t, "patch", "configmap/greeting", "-p", `{"data": {"text": "goodbye"}}`)
	c.waitFor(t, "the volume has the new text", func() bool {
		return c.kubectl(t, "exec", "deployment/web", "--", "cat", "/greeting/text") == "goodbye"
	})
}

// testToken: the pod has a token of its ServiceAccount, bound to it.
func testToken(t *testing.T, c *controlPlane) {
	token := c.kubectl(t, "exec", "deployment/web", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	if got := c.kubectl(t, "auth", "whoami", "--token="+token, "--kubeconfig=/dev/null", "--server="+c.server(), "--certificate-authority="+c.file("ca.crt"), "-o", "jsonpath={.status.userInfo.username}"); got != "system:serviceaccount:default:default" {
		t.Errorf("the token is of %q", got)
	}
}

// testAgentKilled: pods do not notice that the agent is killed, and the next one takes them up.
func testAgentKilled(t *testing.T, c *controlPlane, n *node) {
	before := c.containerIDs(t)
	n.killAgent(t)
	c.kubectl(t, "scale", "deployment/web", "--replicas=3")
	n.startAgent()
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	after := c.containerIDs(t)
	for container, id := range before {
		if after[container] != id {
			t.Errorf("container %s was %s and is %q", container, id, after[container])
		}
	}
	if len(before) != 2 || len(after) != 3 {
		t.Errorf("containers before %v, after %v", before, after)
	}
}

// testAdmission: a pod that the node may not run has failed, for the kubelet's reason.
func testAdmission(t *testing.T, c *controlPlane) {
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: windows}, spec: {os: {name: windows}, nodeName: attic, containers: [{name: main, image: none}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.reason}=PodOSNotSupported", "pod/windows", "--timeout="+timeout.String())
	c.kubectl(t, "delete", "pod/windows", "--timeout="+timeout.String())
}

// testLocalPods: a pod of the user runs beside those of the cluster, which does not take its name.
func testLocalPods(t *testing.T, c *controlPlane, n *node) {
	const local = `{apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]}}`
	cmd := n.command("up", "-d", "-f", "-")
	cmd.Stdin = strings.NewReader(local)
	run(t, cmd)
	c.apply(t, local)
	c.waitFor(t, "the cluster's pod reports the name", func() bool {
		return strings.Contains(c.kubectl(t, "get", "pod/own", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}"), "of this host is not from the cluster")
	})
	c.kubectl(t, "delete", "pod/own", "--timeout="+timeout.String())
	if got := n.podrun(t, "get", "pods", "-o", "jsonpath={.items[?(@.metadata.name=='own')].status.phase}"); got != "Running" {
		t.Errorf("the user's pod is %q", got)
	}
}

// testDelete: deleted pods stop gracefully, and nothing of them stays on the host.
func testDelete(t *testing.T, c *controlPlane, n *node) {
	c.kubectl(t, "delete", "deployment/web", "--cascade=foreground", "--timeout="+timeout.String())
	c.waitFor(t, "the pods are gone from the API server", func() bool { return c.kubectl(t, "get", "pods", "-o", "name") == "" })
	c.waitFor(t, "the pods are gone from the host", func() bool { return n.podrun(t, "get", "pods", "-o", "name") == "pod/own\n" })
	c.waitFor(t, "their Secrets are gone from the host", func() bool { return n.podrun(t, "get", "secrets", "-o", "name") == "" })
}
