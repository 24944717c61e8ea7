package pod

// NetworkMode is the way a pod's traffic leaves the pod.
type NetworkMode string

const (
	NetworkAuto       NetworkMode = ""           // chosen by the machine's capabilities
	NetworkNone       NetworkMode = "none"       // not at all: the pod has only its own loopback
	NetworkHost       NetworkMode = "host"       // the pod uses the host's network
	NetworkMasquerade NetworkMode = "masquerade" // the kernel masquerades packets with the host's address: for root, and IPv4
	NetworkTProxy     NetworkMode = "tproxy"     // the kernel redirects connections, and sockets of the host relay them
	NetworkNetstack   NetworkMode = "netstack"   // a user-space network stack relays them
)

// NetworkModes are the modes that a user can request, in the order of output.
var NetworkModes = []string{"auto", string(NetworkMasquerade), string(NetworkTProxy), string(NetworkNetstack), string(NetworkHost), string(NetworkNone)}

// DNS is the manifest's configuration of the containers' resolver.
type DNS struct {
	Policy      string   `json:"policy,omitempty"` // Kubernetes' dnsPolicy; "" is ClusterFirst
	Nameservers []string `json:"nameservers,omitempty"`
	Searches    []string `json:"searches,omitempty"`
	Options     []string `json:"options,omitempty"` // "name" or "name:value"
}

// Cluster is what a pod has from its Kubernetes cluster.
type Cluster struct {
	DNS    []string `json:"dns,omitempty"` // addresses of the cluster's name servers; empty: podrun answers instead
	Domain string   `json:"domain"`        // of the cluster's names, such as cluster.local
}

// HostAlias adds a line to the containers' /etc/hosts.
type HostAlias struct {
	IP        string   `json:"ip"`
	Hostnames []string `json:"hostnames"`
}

// Domain returns the pod's domain if it has a subdomain, or "" (kubelet:
// GeneratePodHostNameAndDomain).
func (p *Plan) Domain() string {
	if p.Subdomain == "" {
		return ""
	}
	return p.Subdomain + "." + p.Namespace + ".svc." + p.ClusterDomain()
}

// InCluster reports whether the pod is from a Kubernetes cluster: it refers to objects of the cluster, never to the
// user's.
func (p *Plan) InCluster() bool { return p.Cluster != nil }

// ReachesCluster reports whether the pod reaches the Services of a Kubernetes cluster.
func (p *Plan) ReachesCluster() bool { return p.InCluster() || p.ClusterServices }

// DefaultClusterDomain is the domain of the names of pods and Services.
const DefaultClusterDomain = "cluster.local"

// ClusterDomain returns the domain of the names of pods and Services.
func (p *Plan) ClusterDomain() string {
	if p.Cluster != nil {
		return p.Cluster.Domain
	}
	return DefaultClusterDomain
}

// KernelHostname returns the pod's hostname in the kernel (utsname's nodename), with the pod's domain if
// the manifest requests that.
func (p *Plan) KernelHostname() string {
	if p.HostnameAsFQDN && p.Domain() != "" {
		return p.Hostname + "." + p.Domain()
	}
	return p.Hostname
}

// Endpoint is the record that a living pod publishes for names and Services.
type Endpoint struct {
	UID            string            `json:"uid"`
	InCluster      bool              `json:"inCluster,omitempty"`      // the pod is from a Kubernetes cluster
	ReachesCluster bool              `json:"reachesCluster,omitempty"` // it reaches the Services of a cluster
	Hostname       string            `json:"hostname"`
	Subdomain      string            `json:"subdomain,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Addresses      []string          `json:"addresses,omitempty"`
	Ready          bool              `json:"ready,omitempty"` // and not being stopped

	Terminating bool   `json:"terminating,omitempty"` // it is being deleted
	Ports       []Port `json:"ports,omitempty"`       // those with names
	Stack       bool   `json:"stack,omitempty"`       // its network is a user-space stack
}
