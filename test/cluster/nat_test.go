package cluster

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/test/internal/howto"
)

const (
	// natPage is the page whose commands TestHostsBehindNAT runs.
	natPage = "../../docs/how-to/a-node-behind-nat.md"

	konnectivityEnv = "PODRUN_CLUSTER_KONNECTIVITY" // where scripts/test-cluster puts its programs
)

// hide lets the host connect to others, but no others to the host.
func (h *host) hide(t *testing.T) {
	t.Helper()
	h.nft(t, "add table inet nat; add chain inet nat output { type filter hook output priority 0; }; add chain inet nat input { type filter hook input priority 0; policy drop; }; "+
		"add rule inet nat input iif lo accept; add rule inet nat input ct state established,related accept")
	t.Cleanup(func() { h.nft(t, "delete table inet nat") })
}

// nft changes the packet filter of the host.
func (h *host) nft(t *testing.T, commands string) {
	t.Helper()
	run(t, exec.Command("ip", "netns", "exec", h.name, "nft", commands))
}

// TestHostsBehindNAT: the API server reaches nodes that only call out, as the page says.
func TestHostsBehindNAT(t *testing.T) {
	d, others := needHosts(t)
	others = others[:2]
	programs := os.Getenv(konnectivityEnv)
	blocks := howto.Read(t, natPage, map[string]string{
		"`nat/konnectivity.yaml` ": "nat/konnectivity.yaml", "`nat/kustomization.yaml` ": "nat/kustomization.yaml",
		"Every node has one,": "agent.yaml", "On the machine of the control plane:": "control plane", "Now nodes have logs, ": "control plane",
	})
	text := ""
	for _, b := range blocks {
		text += b.Text()
	}
	reference := func(program string) string {
		return regexp.MustCompile(`registry\.k8s\.io/\S+/` + program + `:\S+`).FindString(text)
	}
	d.importProgram(t, filepath.Join(programs, "proxy-server"), reference("proxy-server"), "65532:65532")
	c := &controlPlane{developer: d, address: os.Getenv(addressEnv)}
	start := func(h *host) *node {
		n := c.startNodeOn(t, h, h.name)
		testHidden(t, c, n)
		n.importProgram(t, filepath.Join(programs, "proxy-agent"), reference("proxy-agent"), "65532:65532")
		return n
	}
	var first *node
	for _, b := range blocks {
		text := strings.ReplaceAll(b.Text(), pageAddress, c.address)
		if b.Where != "control plane" {
			path := d.file(b.Where)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, []byte(text))
			top, _, _ := strings.Cut(b.Where, "/")
			d.host.own(t, d.file(top))
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "kubectl apply") {
				first = start(others[0])
			}
			output := run(t, d.hostShell(line))
			t.Logf("%s\n%s", line, output)
			if strings.Contains(line, "--config") {
				c.acceptNodes(t, output)
			}
		}
	}
	c.testReached(t, first)
	if got := c.kubectl(t, "get", "--raw", "/api/v1/namespaces/default/pods/"+first.name+":8080/proxy/index.html"); got != first.name+"\n" {
		t.Errorf("the API server reaches %q, not the pod", got)
	}
	c.testAggregated(t, first)
	second := start(others[1])
	c.kubectl(t, "rollout", "status", "daemonset/konnectivity-agent", "-n", "kube-system", "--timeout="+timeout.String())
	c.testReached(t, first, second)
	for _, program := range []string{"proxy-server", "proxy-agent"} {
		killAll(t, program)
		c.waitFor(t, "logs after "+program+" was killed", func() bool { return c.haveLogs(first, second) })
		c.testReached(t, first, second)
	}
	closed := []func() bool{first.host.forget(t), second.host.forget(t)}
	for _, ok := range closed {
		c.waitFor(t, "an agent notices that its connection is lost", ok)
	}
	c.waitFor(t, "logs after the connections were lost", func() bool { return c.haveLogs(first, second) })
	c.testReached(t, first, second)
}

// testAggregated: the API server reaches an aggregated API, whose pod is on the node.
func (c *controlPlane) testAggregated(t *testing.T, n *node) {
	t.Helper()
	n.importMetricsServer(t, c.programs)
	c.apply(t, readFile(t, metricsServerManifest))
	c.waitFor(t, "metrics of "+n.name, func() bool {
		output, err := c.kubectlCommand("top", "node", n.name).Output()
		return err == nil && strings.Contains(string(output), "Mi ")
	})
	t.Log(c.kubectl(t, "top", "pod", "-A"))
	c.kubectl(t, "delete", "-n", "kube-system", "apiservice/v1beta1.metrics.k8s.io", "deployment/metrics-server")
}

// forget drops the packets of the host's connections to Konnectivity from now on, as NAT does that has forgotten them. closed reports
// whether the host has closed them.
func (h *host) forget(t *testing.T) (closed func() bool) {
	t.Helper()
	lost := h.tunnels(t)
	if len(lost) == 0 {
		t.Fatalf("%s has no connection to Konnectivity", h.name)
	}
	for _, port := range lost {
		h.nft(t, "insert rule inet nat input tcp sport 8132 tcp dport "+port+" drop; insert rule inet nat output tcp sport "+port+" tcp dport 8132 drop")
	}
	return func() bool {
		return !slices.ContainsFunc(h.tunnels(t), func(port string) bool { return slices.Contains(lost, port) })
	}
}

// tunnels returns the ports of the host with a connection to Konnectivity.
func (h *host) tunnels(t *testing.T) (ports []string) {
	t.Helper()
	open := run(t, exec.Command("ip", "netns", "exec", h.name, "ss", "-Htn", "state", "established", "dport = 8132"))
	for _, match := range regexp.MustCompile(`:(\d+) +\S+:8132`).FindAllStringSubmatch(open, -1) {
		ports = append(ports, match[1])
	}
	return ports
}

// killAll kills the processes of a program.
func killAll(t *testing.T, program string) {
	t.Helper()
	all := processes(t, program)
	if len(all) == 0 {
		t.Fatalf("%s does not run", program)
	}
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// testHidden hides a node, and starts a pod on it, whose logs cannot be read.
func testHidden(t *testing.T, c *controlPlane, n *node) {
	t.Helper()
	address := n.host.address + ":" + c.kubectl(t, "get", "node", n.name, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}")
	connect := func() error {
		connection, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err == nil {
			connection.Close()
		}
		return err
	}
	if err := connect(); err != nil {
		t.Fatalf("%s is hidden already: %v", n.name, err)
	}
	n.host.hide(t)
	if connect() == nil {
		t.Fatalf("%s is not hidden", n.name)
	}
	c.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: `+n.name+`}
spec:
  nodeName: `+n.name+`
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: `+image+`
    command: [sh, -c, "hostname | tee /index.html; exec httpd -f -p 8080 -h /"]
    readinessProbe: {httpGet: {path: /index.html, port: 8080}, periodSeconds: 1}
`)
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/"+n.name, "--timeout="+timeout.String())
	if output, err := c.kubectlCommand("logs", n.name).CombinedOutput(); err == nil {
		t.Errorf("%s has logs without an agent:\n%s", n.name, output)
	}
}

// haveLogs reports whether the logs of the pods that testHidden has started can be read.
func (c *controlPlane) haveLogs(nodes ...*node) bool {
	for _, n := range nodes {
		if output, err := c.kubectlCommand("logs", n.name, "--request-timeout=20s").Output(); err != nil || string(output) != n.name+"\n" {
			return false
		}
	}
	return true
}

// testReached: the API server reaches the pods that testHidden has started.
func (c *controlPlane) testReached(t *testing.T, nodes ...*node) {
	t.Helper()
	if !c.haveLogs(nodes...) {
		t.Errorf("not all nodes have logs")
	}
	for _, n := range nodes {
		if got := c.kubectl(t, "exec", n.name, "--", "cat", "/index.html"); got != n.name+"\n" {
			t.Errorf("exec on %s printed %q", n.name, got)
		}
		testPortForward(t, c, n.name, n.name+"\n")
		if got := c.kubectl(t, "get", "--raw", "/api/v1/nodes/"+n.name+"/proxy/metrics/resource"); !strings.Contains(got, "node_cpu_usage_seconds_total") {
			t.Errorf("the metrics of %s are %q", n.name, got)
		}
	}
}

// hostShell returns a command line of the developer as the user of its host.
func (d *developer) hostShell(line string) *exec.Cmd {
	cmd := d.prepare(d.host.command("sh", "-c", line))
	cmd.Env = d.shell(line).Env
	return cmd
}
