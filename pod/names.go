package pod

// DNS is what the manifest says about the resolver of the containers.
type DNS struct {
	Policy      string   `json:"policy,omitempty"` // Kubernetes' dnsPolicy; "" is ClusterFirst
	Nameservers []string `json:"nameservers,omitempty"`
	Searches    []string `json:"searches,omitempty"`
	Options     []string `json:"options,omitempty"` // "name" or "name:value"
}

// HostAlias adds a line to the containers' /etc/hosts.
type HostAlias struct {
	IP        string   `json:"ip"`
	Hostnames []string `json:"hostnames"`
}

// Domain is the pod's, if it has a subdomain, or "" (kubelet: GeneratePodHostNameAndDomain).
func (p *Plan) Domain() string {
	if p.Subdomain == "" {
		return ""
	}
	return p.Subdomain + "." + p.Namespace + ".svc.cluster.local"
}

// NodeName is what the kernel calls the pod: its hostname, with its domain if that is
// asked for.
func (p *Plan) NodeName() string {
	if p.HostnameAsFQDN && p.Domain() != "" {
		return p.Hostname + "." + p.Domain()
	}
	return p.Hostname
}

// Presence is what others are told of a living pod, for names and Services.
type Presence struct {
	UID       string            `json:"uid"`
	Hostname  string            `json:"hostname"`
	Subdomain string            `json:"subdomain,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Addresses []string          `json:"addresses,omitempty"`
	Ready     bool              `json:"ready,omitempty"` // and not about to end
	Ports     []Port            `json:"ports,omitempty"` // those with names
	Stack     bool              `json:"stack,omitempty"` // its network is a stack in user space
}
