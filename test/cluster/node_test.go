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
	t         *testing.T // the agent runs until it ends
	name, dir string
	host      *host // nil: the host and the user of the test
	args      []string
	agent     *process
}

// startNode joins a node, and waits until it is ready. args are for podrun node.
func (c *controlPlane) startNode(t *testing.T, name string, args ...string) *node {
	t.Helper()
	return c.startNodeOn(t, nil, name, args...)
}

// startNodeOn is startNode on another host.
func (c *controlPlane) startNodeOn(t *testing.T, h *host, name string, args ...string) *node {
	t.Helper()
	n := c.newNode(t, h, name)
	n.importImage(t, image)
	n.podrun(t, "node", "join", c.address+":6443", "--token", token, "--discovery-token-ca-cert-hash", c.hash, "--node-name", name)
	n.args = append([]string{"node", "--port", "0"}, args...)
	n.startAgent()
	c.kubectl(t, "wait", "--for=create", "node/"+name, "--timeout="+timeout.String())
	c.kubectl(t, "wait", "--for=condition=Ready", "node/"+name, "--timeout="+timeout.String())
	return n
}

// newNode returns a node that has not joined yet. Its pods end with t.
func newNode(t *testing.T, dir string, h *host) *node {
	t.Helper()
	n := &node{t: t, name: filepath.Base(dir), dir: dir, host: h}
	for _, dir := range []string{n.dir, n.file("run")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.own(t, n.dir)
	t.Cleanup(func() { // after the agent has ended, whose cleanup is later
		run(t, n.command("down", "--all", "-A", "--grace-period", "0"))
	})
	return n
}

// importImage gives the node the example image by a name.
func (n *node) importImage(t *testing.T, name string) {
	t.Helper()
	n.podrun(t, "image", "import", os.Getenv(rootfsEnv), name)
}

// importProgram makes an image of a static program, like the official ones of the control plane. user is USER:GROUP; "" is root.
func (n *node) importProgram(t *testing.T, path, name, user string) {
	t.Helper()
	program := filepath.Base(path)
	layer := tarOf(t, tarFile{"etc/", 0o755, nil}, tarFile{"tmp/", 0o1777, nil}, tarFile{"var/lib/", 0o755, nil},
		tarFile{"usr/local/bin/" + program, 0o755, []byte(readFile(t, path))})
	archive := n.file("image.tar")
	writeImage(t, archive, [][]byte{layer}, []string{name}, map[string]any{"Entrypoint": []string{program}, "User": user})
	n.host.own(t, archive)
	n.podrun(t, "image", "load", archive)
	if err := os.Remove(archive); err != nil {
		t.Fatal(err)
	}
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
	return n.prepare(n.host.command(os.Getenv(podrunEnv), args...))
}

// prepare makes a command run in the node's directory, which is the user's home.
func (n *node) prepare(cmd *exec.Cmd) *exec.Cmd {
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
        readinessProbe: {exec: {command: ["true"]}}
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
	c.startMetricsServer(t)
	c.apply(t, web)
	c.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	for _, client := range c.clients(t) {
		t.Run(client.client, func(t *testing.T) { testClient(t, client) })
	}
	t.Run("metrics", func(t *testing.T) { testMetrics(t, c) })
	t.Run("top", func(t *testing.T) { testTop(t, c) })
	t.Run("objects", func(t *testing.T) { testObjects(t, c) })
	t.Run("token", func(t *testing.T) { testToken(t, c) })
	t.Run("agent", func(t *testing.T) { testAgentKilled(t, c, n) })
	t.Run("offline", func(t *testing.T) { testOffline(t, c, n) })
	t.Run("changes", func(t *testing.T) { testChanges(t, c) })
	t.Run("refused joins", func(t *testing.T) { testRefusedJoins(t, c, n) })
	t.Run("admission", func(t *testing.T) { testAdmission(t, c) })
	t.Run("local pods", func(t *testing.T) { testLocalPods(t, c, n) })
	t.Run("delete", func(t *testing.T) { testDelete(t, c, n) })
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
	if got := c.kubectl(t, "auth", "whoami", "--token="+token, "--kubeconfig=/dev/null", "--server="+c.server(), "--certificate-authority="+c.authority(), "-o", "jsonpath={.status.userInfo.username}"); got != "system:serviceaccount:default:default" {
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

// testOffline: while the API server does not answer, the host restarts what ends; later it reports that.
func testOffline(t *testing.T, c *controlPlane, n *node) {
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: flaky}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "`+image+`", command: [sh, -c, "until [ -e /tmp/end ]; do sleep 0.1; done; rm /tmp/end"]}]}}`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/flaky", "--timeout="+timeout.String())
	before := c.containerIDs(t)
	resume := stopAPIServer(t)
	n.podrun(t, "exec", "flaky", "--", "touch", "/tmp/end")
	c.waitFor(t, "the container runs again", func() bool {
		return n.podrun(t, "get", "pod", "flaky", "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.phase}") == "1 Running"
	})
	resume()
	c.kubectl(t, "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/flaky", "--timeout="+timeout.String())
	for container, id := range c.containerIDs(t) {
		if was := before[container]; was != id && container != "flaky/main" {
			t.Errorf("container %s was %s and is %s", container, was, id)
		}
	}
	c.kubectl(t, "delete", "pod/flaky", "--timeout="+timeout.String())
}

// testChanges: what Kubernetes changes in a running pod is changed in place.
func testChanges(t *testing.T, c *controlPlane) {
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: resized, labels: {color: red}}, spec: {terminationGracePeriodSeconds: 0,
		containers: [{name: main, image: "`+image+`", command: [sleep, "1000"], resources: {limits: {cpu: 200m, memory: 64Mi}},
			volumeMounts: [{name: labels, mountPath: /labels}]}],
		volumes: [{name: labels, downwardAPI: {items: [{path: all, fieldRef: {fieldPath: metadata.labels}}]}}]}}`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/resized", "--timeout="+timeout.String())
	before := c.containerIDs(t)["resized/main"]
	c.kubectl(t, "patch", "pod/resized", "--subresource=resize", "-p", `{"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "300m"}, "requests": {"cpu": "300m"}}}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.containerStatuses[0].resources.limits.cpu}=300m", "pod/resized", "--timeout="+timeout.String())
	c.kubectl(t, "label", "--overwrite", "pod/resized", "color=blue")
	c.waitFor(t, "the volume has the new label", func() bool {
		return c.kubectl(t, "exec", "resized", "--", "cat", "/labels/all") == `color="blue"`
	})
	if after := c.containerIDs(t)["resized/main"]; after != before {
		t.Errorf("the container was %s and is %s", before, after)
	}
	c.kubectl(t, "delete", "pod/resized", "--timeout="+timeout.String())
}

// testRefusedJoins: a host joins one cluster, and only with the cluster's secrets.
func testRefusedJoins(t *testing.T, c *controlPlane, n *node) {
	hash := c.hash
	wrong := "sha256:" + strings.Repeat("0", 64)
	for _, tc := range []struct{ token, hash, home, message string }{
		{token, wrong, "other", "its hash is " + hash + ", not " + wrong},
		{"zzzzzz.0123456789abcdef", hash, "other", "the token zzzzzz is unknown there"},
		{tokenID + ".zzzzzzzzzzzzzzzz", hash, "other", "its signature is not by the token"},
		{token, hash, "data", "another podrun node of this user is running"},
	} {
		cmd := n.command("node", "join", c.address+":6443", "--token", tc.token, "--discovery-token-ca-cert-hash", tc.hash)
		cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+n.file(tc.home))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tc.message) {
			t.Errorf("join: %v, not %q:\n%s", err, tc.message, out)
		}
	}
}

// testAdmission: a pod that the node may not run has failed, for the kubelet's reason.
func testAdmission(t *testing.T, c *controlPlane) {
	c.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: windows}, spec: {os: {name: windows}, nodeName: attic, containers: [{name: main, image: none}]}}`)
	c.kubectl(t, "wait", "--for=jsonpath={.status.reason}=PodOSNotSupported", "pod/windows", "--timeout="+timeout.String())
	c.kubectl(t, "delete", "pod/windows", "--timeout="+timeout.String())
}

// testLocalPods: a pod of the user runs beside the cluster's pods; the cluster does not take its name.
func testLocalPods(t *testing.T, c *controlPlane, n *node) {
	const local = `{apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [sleep, "1000"]}]}}`
	cmd := n.command("up", "-d", "-f", "-")
	cmd.Stdin = strings.NewReader(local)
	run(t, cmd)
	c.apply(t, local)
	c.waitFor(t, "the cluster's pod reports the name", func() bool {
		return strings.Contains(c.kubectl(t, "get", "pod/own", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}"), "of this host is not from the cluster")
	})
	for _, args := range [][]string{{"exec", "own", "--", "true"}, {"logs", "own"}} {
		if out, err := c.kubectlCommand(args...).CombinedOutput(); err == nil || !strings.Contains(string(out), `pod "own" is waiting to start`) {
			t.Errorf("%v of the cluster's pod: %v\n%s", args, err, out)
		}
	}
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
