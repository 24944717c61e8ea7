package cluster

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/test/internal/howto"
)

// ownPage is the page whose commands TestOwnCluster runs.
const ownPage = "../../docs/how-to/kubernetes-of-your-own.md"

// A developer is a user with podrun, kubectl and the images of a control plane, who creates clusters by podrun cluster.
type developer struct {
	*node
	programs string // the directory of the programs
	client   string // the name of kubectl among the programs
	context  string // of kubectl; "" is the current one
}

// newDeveloper returns a user without clusters. Its clusters and pods end with t.
func newDeveloper(t *testing.T) *developer {
	t.Helper()
	needPrograms(t)
	var h *host
	root := t.TempDir()
	if all := hosts(); len(all) > 0 {
		h = all[0]
		if err := os.Chmod(filepath.Dir(root), 0o711); err != nil { // for the users of the nodes
			t.Fatal(err)
		}
	}
	d := &developer{node: newNode(t, filepath.Join(root, "home"), h), programs: os.Getenv(programsEnv), client: "kubectl"}
	t.Cleanup(func() {
		for _, line := range strings.Split(strings.TrimSpace(d.podrun(t, "cluster", "ls")), "\n")[1:] {
			name := strings.Fields(line)[0]
			if t.Failed() {
				showLog(t, "cluster "+name, d.podrun(t, "cluster", "logs", name))
			}
			d.podrun(t, "cluster", "delete", name)
		}
		d.nothingLeft(t)
	})
	for _, name := range strings.Fields(d.podrun(t, "cluster", "images")) {
		program, _, _ := strings.Cut(filepath.Base(name), ":")
		d.importProgram(t, filepath.Join(d.programs, program), name, "")
	}
	d.importImage(t, image)
	return d
}

// nothingLeft fails t if the deleted clusters have left something.
func (d *developer) nothingLeft(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"get", "pods", "-A", "-o", "name"}, {"get", "pvc", "-A", "-o", "name"}} {
		if got := d.podrun(t, args...); got != "" {
			t.Errorf("podrun %v: %s", args, got)
		}
	}
	if left, err := filepath.Glob(d.file("data/podrun/clusters/*/*")); err != nil || len(left) > 0 {
		t.Errorf("files %v, %v", left, err)
	}
	if left, err := filepath.Glob(d.file("data/podrun/volumes/*/*")); err != nil || len(left) > 0 {
		t.Errorf("volumes %v, %v", left, err)
	}
	if text, err := os.ReadFile(d.kubeconfig()); err == nil && strings.Contains(string(text), "podrun-") {
		t.Errorf("the kubeconfig has still\n%s", text)
	}
}

func (d *developer) kubeconfig() string { return d.file(".kube/config") }

// clusterFile returns the path of a file of the cluster podrun.
func (d *developer) clusterFile(name string) string {
	return filepath.Join(d.file("data/podrun/clusters/podrun"), name)
}

// newNode returns a node beside the developer's home, which has not joined a cluster yet.
func (d *developer) newNode(t *testing.T, h *host, name string) *node {
	t.Helper()
	return newNode(t, filepath.Join(filepath.Dir(d.dir), name), h)
}

// program returns a call of a program in the developer's home, with the clusters in KUBECONFIG.
func (d *developer) program(path string, args ...string) *exec.Cmd {
	cmd := d.prepare(exec.Command(path, args...))
	cmd.Env = append(cmd.Env, "KUBECONFIG="+d.kubeconfig(), "PATH="+strings.Join([]string{filepath.Dir(os.Getenv(podrunEnv)), d.programs, os.Getenv(toolsEnv), os.Getenv("PATH")}, ":"))
	return cmd
}

// shell returns a command line of the developer.
func (d *developer) shell(line string) *exec.Cmd { return d.program("sh", "-c", line) }

// freePort returns a port of the host that nothing uses.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// kubectl runs kubectl in the developer's context, or as --kubeconfig specifies, and returns its standard output. It fails t if
// kubectl fails.
func (d *developer) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, d.kubectlCommand(args...))
}

// kubectlCommand returns a call of kubectl, which may fail.
func (d *developer) kubectlCommand(args ...string) *exec.Cmd {
	if d.context != "" {
		args = append([]string{"--context=" + d.context}, args...)
	}
	return d.program(filepath.Join(d.programs, d.client), args...)
}

// apply creates or changes the objects of a manifest.
func (d *developer) apply(t *testing.T, manifest string) {
	t.Helper()
	cmd := d.kubectlCommand("apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	run(t, cmd)
}

// readOwnPage returns the blocks of ownPage.
func readOwnPage(t *testing.T) []howto.Block {
	t.Helper()
	return howto.Read(t, ownPage, map[string]string{
		"Type:": "type", "A Deployment with its Service and data, `web.yaml`": "web.yaml",
		"On this machine:": "control plane", "`token.yaml`,": "token.yaml", "On each of the others:": "node",
	})
}

// TestOwnCluster: the commands of the page do what it says.
func TestOwnCluster(t *testing.T) {
	d := newDeveloper(t)
	d.importImage(t, "localhost/web:1")
	starts := 0
	for _, b := range readOwnPage(t) {
		switch b.Where {
		case "web.yaml":
			writeFile(t, d.file(b.Where), []byte(b.Text()))
			continue
		case "type":
		default: // TestNode has a control plane for other machines
			continue
		}
		for _, line := range b.Lines {
			if strings.HasPrefix(line, "kubectl exec") { // the API server may not know yet that the pod ran before its node stopped
				d.waitFor(t, line, func() bool { return d.shell(line).Run() == nil })
			}
			output := run(t, d.shell(line))
			t.Logf("%s\n%s", line, output)
			switch {
			case strings.HasPrefix(line, "kubectl get nodes"):
				if !strings.Contains(output, "dev-1") || !strings.Contains(output, " Ready ") {
					t.Errorf("%s printed %s", line, output)
				}
			case strings.Contains(line, "get nodes -o wide"):
				if got := strings.Count(output, " Ready "); got != 3 {
					t.Errorf("%d nodes are ready, want 3", got)
				}
			case strings.HasPrefix(line, "kubectl exec"):
				starts++
				if got := strings.Count(output, "\n"); got != starts {
					t.Errorf("the volume has the output of %d starts, want %d", got, starts)
				}
			case strings.HasPrefix(line, "curl"):
				if got := strings.Count(output, "\n"); got != starts {
					t.Errorf("the answer has %d lines, want %d", got, starts)
				}
			case line == "podrun cluster ls":
				if !strings.Contains(output, "Stopped") {
					t.Errorf("a stopped cluster is not listed:\n%s", output)
				}
			}
		}
	}
	if starts != 2 {
		t.Errorf("%s has %d commands that read the volume, want 2", ownPage, starts)
	}
}

// reachable is a Deployment with a pod on each of two nodes, whose answers are their names, a client, and a pod in the network of the
// second node.
const reachable = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]
      containers:
      - name: web
        image: ` + image + `
        command: [sh, -c, "hostname >/tmp/name; exec httpd -f -p 8000 -h /tmp"]
        readinessProbe: {httpGet: {path: /name, port: 8000}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8000, nodePort: 30080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeName: two-1
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: ` + image + `, command: [sleep, "10000"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  nodeName: two-2
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: ` + image + `, command: [sleep, "10000"]}]
`

// TestTwoNodes: in a cluster of two nodes everything reaches everything: pods, node networks, the API server and the host.
func TestTwoNodes(t *testing.T) {
	d := newDeveloper(t)
	port := freePort(t)
	d.importMetricsServer(t, d.programs)
	d.podrun(t, "cluster", "create", "two", "--nodes", "2", "--port", port+":30080", "--metrics-server")
	d.apply(t, reachable)
	d.kubectl(t, "rollout", "status", "deployment/web", "--timeout="+timeout.String())
	d.kubectl(t, "wait", "--for=condition=Ready", "pod/client", "pod/host", "--timeout="+timeout.String())
	pods := strings.Fields(d.kubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"))
	nodes := strings.Fields(d.kubectl(t, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}"))
	if slices.Sort(nodes); !slices.Equal(nodes, []string{"two-1", "two-2"}) {
		t.Fatalf("the pods are on %v", nodes)
	}
	d.kubectl(t, "wait", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "service/web", "--timeout="+timeout.String())
	balancer := d.kubectl(t, "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	service := d.kubectl(t, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	get := func(pod, address string) func() string {
		return func() string {
			output, _ := d.kubectlCommand("exec", pod, "--", "wget", "-q", "-O", "-", "http://"+address+"/name").Output() // a failure is no name of a pod
			return strings.TrimSpace(string(output))
		}
	}
	ways := map[string]func() string{
		"a Service by name, from a pod":            get("client", "web"),
		"a Service, from a node's network":         get("host", service),
		"a node port of node 1, from a pod":        get("client", "10.87.0.1:30080"),
		"a node port of node 2, from a pod":        get("client", "10.87.0.2:30080"),
		"a node port, from another node's network": get("host", "10.87.0.1:30080"),
		"the load balancer, from a pod":            get("client", balancer),
		"the load balancer, from a node's network": get("host", balancer),
		"a node port, from the host": func() string {
			output, _ := exec.Command("curl", "-s", "http://127.0.0.1:"+port+"/name").Output()
			return strings.TrimSpace(string(output))
		},
		"a Service, through the API server": func() string {
			output, _ := d.kubectlCommand("get", "--raw", "/api/v1/namespaces/default/services/web/proxy/name").Output()
			return strings.TrimSpace(string(output))
		},
	}
	for way, ask := range ways {
		answers := map[string]bool{}
		d.waitFor(t, "an answer of both pods to "+way, func() bool {
			answers[ask()] = true
			return answers[pods[0]] && answers[pods[1]]
		})
	}
	d.testNames(t, pods, service)
	if got := strings.TrimSpace(d.kubectl(t, "exec", "host", "--", "hostname")); got != "two-2" {
		t.Errorf("the name of a node is %s in its network", got)
	}
	if got := d.kubectl(t, "get", "--raw", "/api/v1/nodes/two-2/proxy/logs/pods/"); !strings.Contains(got, "default_host_") {
		t.Errorf("the logs of a node are %s", got)
	}
	d.waitFor(t, "the usage of both nodes", func() bool {
		output, _ := d.kubectlCommand("top", "nodes", "--no-headers").Output() // an error until there are metrics
		return strings.Count(string(output), "Mi ") == 2
	})
	for _, name := range pods {
		if got := strings.TrimSpace(d.kubectl(t, "get", "--raw", "/api/v1/namespaces/default/pods/"+name+":8000/proxy/name")); got != name {
			t.Errorf("the API server reaches %q, not %s", got, name)
		}
		address := d.kubectl(t, "get", "pod", name, "-o", "jsonpath={.status.podIP}")
		if got := get("host", address+":8000")(); got != name {
			t.Errorf("a node reaches %q at %s, not %s", got, address, name)
		}
	}
}

// testNames: a pod resolves the names of Services, of pods of both nodes, and of the cluster's name server.
func (d *developer) testNames(t *testing.T, pods []string, service string) {
	t.Helper()
	_, resolver, _ := strings.Cut(d.kubectl(t, "exec", "client", "--", "cat", "/etc/resolv.conf"), "nameserver ")
	resolver, _, _ = strings.Cut(resolver, "\n")
	names := map[string]string{"web.default.svc.cluster.local": service, "kube-dns.kube-system.svc.cluster.local": resolver}
	for _, name := range pods {
		address := d.kubectl(t, "get", "pod", name, "-o", "jsonpath={.status.podIP}")
		names[strings.ReplaceAll(address, ".", "-")+".default.pod.cluster.local"] = address
	}
	for name, want := range names {
		if got := d.kubectl(t, "exec", "client", "--", "nslookup", name, "kube-dns.kube-system"); !strings.Contains(got, "Address: "+want+"\n") {
			t.Errorf("%s is not %s:\n%s", name, want, got)
		}
	}
}

// TestClusters: clusters run beside each other; what is wrong is refused before anything is made; killed commands can be repeated.
func TestClusters(t *testing.T) {
	d := newDeveloper(t)
	for _, tc := range []struct {
		args    []string
		message string
	}{
		{[]string{"create", "Dev"}, `"Dev" is not a valid name of a cluster`},
		{[]string{"create", "dev", "--nodes", "33"}, "--nodes must be from 0 to 32, not 33"},
		{[]string{"create", "dev", "--nodes", "0"}, "--nodes 0 requires --api-address"},
		{[]string{"create", "dev", "--nodes", "0", "--api-address", "192.0.2.1:6443", "--metrics-server"}, "--nodes 0 and --metrics-server are mutually exclusive"},
		{[]string{"create", "dev", "--kubernetes", "1.20.1"}, "older than 1.34"},
		{[]string{"create", "dev", "--port", "80"}, `"80" is not [ADDRESS:]HOST:NODE[/udp]`},
		{[]string{"create", "dev", "--api-address", "6443"}, "--api-address must be an address and a port"},
		{[]string{"delete", "dev"}, `there is no cluster "dev"`},
		{[]string{"start", "dev"}, `there is no cluster "dev"`},
		{[]string{"kubeconfig", "dev"}, `there is no cluster "dev"`},
	} {
		if out, err := d.command(append([]string{"cluster"}, tc.args...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), tc.message) {
			t.Errorf("podrun cluster %v: %v, not %q:\n%s", tc.args, err, tc.message, out)
		}
	}
	d.nothingLeft(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		d.podrun(t, "cluster", "create", name)
	}
	if out, err := d.command("cluster", "create", "a").CombinedOutput(); err == nil || !strings.Contains(string(out), "the cluster a exists already") {
		t.Errorf("the same cluster again: %v\n%s", err, out)
	}
	for _, name := range names {
		d.context = "podrun-" + name
		if got := d.kubectl(t, "get", "nodes", "-o", "name"); got != "node/"+name+"-1\n" {
			t.Errorf("cluster %s has %q", name, got)
		}
	}
	// The kubeconfig of podrun cluster kubeconfig is whole.
	config := d.podrun(t, "cluster", "kubeconfig", "b")
	writeFile(t, d.file("b.kubeconfig"), []byte(config))
	d.context = ""
	if got := d.kubectl(t, "--kubeconfig="+d.file("b.kubeconfig"), "get", "nodes", "-o", "name"); got != "node/b-1\n" {
		t.Errorf("the kubeconfig of b leads to %q", got)
	}
	for _, tc := range []struct {
		args   []string
		reason string
		until  string // this file is there, or gone
		there  bool
	}{
		{[]string{"create", "killed"}, "the record of the cluster", "killed/cluster.json", true},
		{[]string{"delete", "c"}, "the removal of the certificates", "c/kubernetes", false},
	} {
		cmd := d.command(append([]string{"cluster"}, tc.args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d.waitFor(t, tc.reason, func() bool {
			_, err := os.Stat(d.file("data/podrun/clusters/" + tc.until))
			return (err == nil) == tc.there
		})
		cmd.Process.Kill()
		cmd.Wait()
		if name := tc.args[1]; strings.Contains(d.podrun(t, "cluster", "ls"), "podrun-"+name) {
			d.podrun(t, "cluster", "delete", name)
		}
	}
	if got := d.podrun(t, "cluster", "ls"); strings.Count(got, "Running") != 2 || strings.Contains(got, "podrun-c") || strings.Contains(got, "podrun-killed") {
		t.Errorf("after the deletion of c:\n%s", got)
	}
}

// repetitionsEnv has how often TestRepeatedClusters creates a cluster.
const repetitionsEnv = "PODRUN_CLUSTER_REPETITIONS"

// TestRepeatedClusters: a cluster that is created again and again leaves nothing, nor do up to ten clusters beside each other.
func TestRepeatedClusters(t *testing.T) {
	d := newDeveloper(t)
	count, err := strconv.Atoi(os.Getenv(repetitionsEnv))
	if err != nil {
		count = 2
	}
	for range count {
		d.podrun(t, "cluster", "create")
		d.podrun(t, "cluster", "delete")
		d.nothingLeft(t)
	}
	var names []string
	for i := range min(count, 10) {
		names = append(names, "c"+strconv.Itoa(i))
		d.podrun(t, "cluster", "create", names[i])
	}
	for _, name := range names {
		d.kubectl(t, "--context=podrun-"+name, "wait", "--for=condition=Ready", "node", "--all", "--timeout="+timeout.String())
		d.podrun(t, "cluster", "delete", name)
	}
	d.nothingLeft(t)
}
