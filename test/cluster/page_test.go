package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/node/controlplane"
	"github.com/podrun/podrun/test/internal/howto"
)

// pagePath is the documentation whose commands TestHostsPage runs.
const pagePath = "../../docs/how-to/cluster-of-raspberry-pis.md"

// What stands in the page for the cluster of the reader.
const (
	pageAddress   = "192.168.1.5"
	pageArguments = pageAddress + ":6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:1234…"
	pageInstall   = "podrun systemd install-node --now -- "
)

// twoAuthorities makes the authority of a control plane that is like k3s's, before it starts: the certificate authority that
// clients verify the API server with is not the authority of its own client certificate, and it verifies the certificates of nodes.
func (d *developer) twoAuthorities(t *testing.T) arguments {
	t.Helper()
	c := controlplane.Cluster{Name: "podrun", Dir: d.clusterFile("")}
	clients := controlplane.Cluster{Name: "clients", Dir: filepath.Join(c.KubernetesDir(), "clients")}
	if err := errors.Join(c.WriteCredentials(time.Now()), clients.WriteCredentials(time.Now())); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(c.KubernetesDir(), "clients.crt"), []byte(readFile(t, clients.Authority())+readFile(t, c.Authority())))
	d.host.own(t, filepath.Dir(c.Dir))
	const client = "/etc/kubernetes/clients/kubernetes/pki/apiserver-kubelet-client"
	return arguments{"kube-apiserver": {"--client-ca-file=/etc/kubernetes/clients.crt", "--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt",
		"--kubelet-client-certificate=" + client + ".crt", "--kubelet-client-key=" + client + ".key"}}
}

// TestHostsPage: the commands of the page lead to a cluster of three hosts.
func TestHostsPage(t *testing.T) {
	// What the page permits is not permitted before.
	forbid := []string{"delete", "clusterrolebinding/podrun-nodes", "clusterrolebinding/podrun-peers", "clusterrole/podrun-peers"}
	t.Run("kubeadm", func(t *testing.T) {
		d, others := needHosts(t)
		c := d.startControlPlane(t)
		c.kubectl(t, forbid...)
		testPage(t, c, others, "kubeadm")
	})
	t.Run("k3s", func(t *testing.T) {
		d, others := needHosts(t)
		c := d.startControlPlane(t, d.twoAuthorities(t))
		c.kubectl(t, append(forbid, "clusterrolebinding/kubeadm:kubelet-bootstrap", "clusterrolebinding/kubeadm:node-autoapprove-bootstrap",
			"clusterrolebinding/kubeadm:node-autoapprove-certificate-rotation")...)
		c.kubectl(t, "delete", "configmap", "cluster-info", "-n", "kube-public")
		testPage(t, c, others, "k3s")
	})
}

// testPage runs the commands of the page for one kind of control plane.
func testPage(t *testing.T, c *controlPlane, hosts []*host, kind string) {
	blocks := readPage(t, kind)
	r := &reader{controlPlane: c}
	manifest := blocks[slices.IndexFunc(blocks, func(b howto.Block) bool { return b.Where == "web.yaml" })].Text()
	writeFile(t, c.file("web.yaml"), []byte(manifest))
	image := regexp.MustCompile(`image: (\S+)`).FindStringSubmatch(manifest)[1]
	for _, h := range hosts {
		n := c.newNode(t, h, h.name)
		n.importImage(t, image)
		r.nodes = append(r.nodes, n)
	}
	for _, b := range blocks {
		for _, line := range b.Lines {
			switch b.Where {
			case "server":
				r.runOnServer(t, line)
			case "Pi":
				for _, n := range r.nodes {
					r.runOnNode(t, n, line)
				}
			}
		}
	}
	var want []string
	for _, h := range hosts {
		want = append(want, h.name, h.name)
	}
	if got := c.nodesOf(t, "app=web"); !slices.Equal(got, want) {
		t.Errorf("the pods are on %v, want %v", got, want)
	}
	if answer := strings.TrimSpace(r.output); !slices.Contains(want, answer) {
		t.Errorf("the last command printed %q, not a host", answer)
	}
}

// readPage returns the blocks of the page for one kind of control plane.
func readPage(t *testing.T, kind string) []howto.Block {
	t.Helper()
	places := map[string]string{"On the server:": "server", "On each Pi:": "Pi", "`web.yaml`,": "web.yaml"}
	return slices.DeleteFunc(howto.Read(t, pagePath, places), func(b howto.Block) bool { return b.Section != "" && b.Section != kind })
}

// A reader does what the page says.
type reader struct {
	*controlPlane
	nodes     []*node
	arguments string // that kubeadm token create has printed
	output    string // of the last command on the server
}

// runOnServer runs a command of the page as the cluster's administrator.
func (r *reader) runOnServer(t *testing.T, line string) {
	t.Helper()
	line = strings.ReplaceAll(line, pageAddress, r.address)
	program, _, _ := strings.Cut(line, " ")
	switch program {
	case "sudo", "mkdir", "curl", "export": // the control plane is there
		return
	case "scp":
		r.copyToNode(t, strings.Fields(line))
		return
	case "kubectl", "kubeadm":
	default:
		t.Fatalf("%s: the test does not know the command %s", pagePath, line)
	}
	if strings.Contains(line, "kubectl certificate approve") {
		r.waitFor(t, "the nodes request certificates", func() bool {
			return strings.Count(r.kubectl(t, "get", "csr", "--field-selector", "spec.signerName=kubernetes.io/kubelet-serving", "-o", "name"), "\n") == len(r.nodes)
		})
	}
	if strings.HasPrefix(line, "kubectl exec ") { // the host of the pod may learn the Service's endpoints a moment later
		r.waitFor(t, line, func() bool { return r.shell(line).Run() == nil })
	}
	r.output = run(t, r.shell(line))
	t.Logf("%s\n%s", line, r.output)
	if program == "kubeadm" {
		r.arguments = strings.TrimSpace(strings.TrimPrefix(r.output, "kubeadm join "))
		id := regexp.MustCompile(`--token (\w+)\.`).FindStringSubmatch(r.arguments)[1]
		r.waitForToken(t, id)
	}
}

// copyToNode does what scp FILE piN: does.
func (r *reader) copyToNode(t *testing.T, words []string) {
	t.Helper()
	i := slices.Index([]string{"pi1:", "pi2:", "pi3:"}, words[len(words)-1])
	if len(words) != 3 || i < 0 {
		t.Fatalf("%s: %v", pagePath, words)
	}
	path := r.nodes[i].file(words[1])
	writeFile(t, path, []byte(readFile(t, r.file(words[1]))))
	r.nodes[i].host.own(t, path)
}

// runOnNode runs a command of the page as the user of a node. Instead of the unit, it runs what the unit does.
func (r *reader) runOnNode(t *testing.T, n *node, line string) {
	t.Helper()
	if args, ok := strings.CutPrefix(line, pageInstall); ok {
		n.args = append([]string{"node"}, strings.Fields(strings.ReplaceAll(args, "~", n.dir))...)
		n.startAgent()
		r.kubectl(t, "wait", "--for=create", "node/"+n.name, "--timeout="+timeout.String())
		r.kubectl(t, "wait", "--for=condition=Ready", "node/"+n.name, "--timeout="+timeout.String())
		return
	}
	if !strings.HasPrefix(line, "podrun ") {
		t.Fatalf("%s: the test does not know the command %s", pagePath, line)
	}
	if strings.Contains(line, "join") {
		if !strings.HasSuffix(line, pageArguments) {
			t.Fatalf("%s: %s has other arguments than the test expects", pagePath, line)
		}
		line = strings.Replace(line, pageArguments, r.arguments, 1)
	}
	cmd := n.prepare(n.host.command("sh", "-c", line))
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(os.Getenv(podrunEnv))+":"+os.Getenv("PATH"))
	t.Logf("%s: %s\n%s", n.name, line, run(t, cmd))
}
