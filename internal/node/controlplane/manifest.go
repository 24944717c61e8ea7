// Package controlplane describes a Kubernetes cluster that runs as one pod: the official images of a control plane with
// kubeadm's flags and certificates, and podrun node in a container for each node.
package controlplane

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Versions of Kubernetes and its etcd (kubeadm: cmd/kubeadm/app/constants).
const (
	DefaultVersion = "1.36.3"
	etcdVersion    = "3.6.8-0"
	oldestMinor    = 34 // of an API server that podrun node supports
)

// Networks of every cluster. They exist only inside its pod; Services and pods have the ranges of kubeadm and kind.
const (
	services     = "10.96.0.0/16"
	firstService = "10.96.0.1" // of the Service kubernetes
	pods         = "10.244.0.0/16"
	nodeNetwork  = "10.87.0.0/24"
)

// MaxNodes is how many nodes the pod of a cluster may have. Without any it is a control plane for other machines.
const MaxNodes = 32

// maxName is how long the name of a cluster may be: the names of its pod, nodes and claim contain it.
const maxName = 40

// A Cluster is what is decided when a cluster is created. It is a value; the files follow from it.
type Cluster struct {
	Name       string
	Version    string // of Kubernetes, without v
	Dir        string // of the cluster's files
	Podrun     string // path of the binary that the nodes run
	Images     string // directory of the image store that the nodes share with the user
	Registries Registries
	APIAddress string // at which the host reaches the API server
	APIPort    int
	NodeCount  int
	Ports      []Port // of the first node

	MetricsServer bool // it has metrics-server
}

// Registries are directories of the host with settings of registries (containers-registries.conf(5) and its like), which the
// nodes use. Each is "" if there is none.
type Registries struct {
	System string // /etc/containers
	User   string // ~/.config/containers
}

// A Port is a port of the host that leads to a port of the first node.
type Port struct {
	HostAddress string
	Host, Node  int
	Protocol    string // TCP or UDP
}

// A Node is one node of a cluster.
type Node struct {
	Name    string // in the cluster
	Address string
	Number  int // from 1
	Ports   []Port
}

// Container returns the name of the node's container.
func (n Node) Container() string { return fmt.Sprintf("node-%d", n.Number) }

// Pod returns the name of the cluster's pod, which is the name of its context in a kubeconfig, too.
func (c Cluster) Pod() string { return "podrun-" + c.Name }

// CheckName returns an error if a name is not valid for a cluster: the names that follow from it must be DNS labels.
func CheckName(name string) error {
	if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
		return fmt.Errorf("%q is not a valid name of a cluster: %s", name, bad[0])
	}
	if len(name) > maxName {
		return fmt.Errorf("%q is not a valid name of a cluster: it has more than %d characters", name, maxName)
	}
	return nil
}

var versionForm = regexp.MustCompile(`^1\.([1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,3})$`)

// ParseVersion returns a version of Kubernetes without its v, or an error if podrun's nodes do not support it.
func ParseVersion(text string) (string, error) {
	version := strings.TrimPrefix(text, "v")
	parts := versionForm.FindStringSubmatch(version)
	if parts == nil {
		return "", fmt.Errorf("%q is not a version of Kubernetes, such as %s", text, DefaultVersion)
	}
	minor, _ := strconv.Atoi(parts[1]) // digits
	if minor < oldestMinor {
		return "", fmt.Errorf("Kubernetes %s is older than 1.%d, the oldest that podrun's nodes join", version, oldestMinor)
	}
	return version, nil
}

// Nodes returns the nodes. The first one is in the network of the control plane.
func (c Cluster) Nodes() []Node {
	var all []Node
	for i := 1; i <= c.NodeCount; i++ {
		n := Node{Name: fmt.Sprintf("%s-%d", c.Name, i), Address: c.Address(i), Number: i}
		if i == 1 {
			n.Ports = c.Ports
		}
		all = append(all, n)
	}
	return all
}

// Address returns the address of the node with a number.
func (c Cluster) Address(number int) string {
	a := netip.MustParsePrefix(nodeNetwork).Addr()
	for range number {
		a = a.Next()
	}
	return a.String()
}

// Services returns the range of the addresses of Services.
func (c Cluster) Services() string { return services }

// Pods returns the range of the addresses of pods.
func (c Cluster) Pods() string { return pods }

// Image returns the reference of the image of a program of the control plane.
func (c Cluster) Image(program string) string {
	if program == "etcd" {
		return "registry.k8s.io/etcd:" + etcdVersion
	}
	return "registry.k8s.io/" + program + ":v" + c.Version
}

// AllImages returns the references of all images that a cluster needs.
func (c Cluster) AllImages() []string {
	var all []string
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, c.Image(program))
	}
	if c.MetricsServer {
		all = append(all, metricsServerImage)
	}
	return all
}

// Server returns the URL of the API server for the host.
func (c Cluster) Server() string {
	address, err := netip.ParseAddr(c.APIAddress)
	if err != nil || address.IsUnspecified() {
		address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return "https://" + netip.AddrPortFrom(address, uint16(c.APIPort)).String()
}

// KubernetesDir returns the directory that the containers have as /etc/kubernetes, with kubeadm's file names.
func (c Cluster) KubernetesDir() string { return filepath.Join(c.Dir, "kubernetes") }

// Claim returns the name of the claim with what a container stores.
func (c Cluster) Claim(container string) string { return c.Pod() + "-" + container }

// Claims returns the names of all claims.
func (c Cluster) Claims() []string {
	all := []string{c.Claim("etcd")}
	for _, n := range c.Nodes() {
		all = append(all, c.Claim(n.Container()))
	}
	return all
}

// Authority returns the path of the certificate of the cluster's authority.
func (c Cluster) Authority() string { return filepath.Join(c.KubernetesDir(), "pki", "ca.crt") }

// AdminConf returns the path of the administrator's kubeconfig.
func (c Cluster) AdminConf() string { return filepath.Join(c.KubernetesDir(), "admin.conf") }

//go:embed pod.yaml.tmpl
var podTemplate string

var parsed = template.Must(template.New("pod").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(podTemplate))

// Manifest returns the manifest of the cluster's pod and its claims.
func (c Cluster) Manifest() ([]byte, error) {
	var b bytes.Buffer
	if err := parsed.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("make the manifest of the cluster: %w", err)
	}
	return b.Bytes(), nil
}

// nodeForm is what the name of a node's container looks like, right or wrong.
var nodeForm = regexp.MustCompile(`^node-?[0-9]*$`)

// ReadPod takes over what a changed manifest says of the cluster: its version, the number of the nodes, and the host port of the
// API server.
func (c *Cluster) ReadPod(p *corev1.Pod) error {
	if p.Name != c.Pod() || p.Namespace != "default" {
		return fmt.Errorf("metadata.name must be %s, in the namespace default, not %s in %s", c.Pod(), p.Name, p.Namespace)
	}
	c.NodeCount, c.APIPort = 0, 0
	has := map[string]bool{}
	for _, container := range p.Spec.Containers {
		has[container.Name] = true
		if _, tag, ok := strings.Cut(path.Base(container.Image), ":v"); ok && container.Name == "kube-apiserver" {
			c.Version = tag
		}
		for _, port := range container.Ports {
			if container.Name == "kube-apiserver" && port.ContainerPort == APIPort && port.HostPort != 0 {
				c.APIAddress, c.APIPort = port.HostIP, int(port.HostPort)
			}
		}
	}
	next := Node{Number: 1}.Container()
	for has[next] {
		delete(has, next)
		c.NodeCount++
		next = Node{Number: c.NodeCount + 1}.Container()
	}
	for name := range has {
		if nodeForm.MatchString(name) {
			return fmt.Errorf("spec.containers has %s, but no %s", name, next)
		}
	}
	switch {
	case c.NodeCount > MaxNodes:
		return fmt.Errorf("spec.containers has more than %d nodes", MaxNodes)
	case c.APIPort == 0:
		return fmt.Errorf("the container kube-apiserver has no hostPort for its port %d", APIPort)
	}
	return nil
}

// APIPort is the port of the API server in its pod, and of the endpoint of the Service kubernetes.
const APIPort = 6443
