package pod

// DNS is the manifest's configuration of the containers' resolver.
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

// Domain returns the pod's domain if it has a subdomain, or "" (kubelet:
// GeneratePodHostNameAndDomain).
func (p *Plan) Domain() string {
	if p.Subdomain == "" {
		return ""
	}
	return p.Subdomain + "." + p.Namespace + ".svc.cluster.local"
}

// NodeName is the pod's hostname in the kernel, with its domain if the manifest requests that.
func (p *Plan) NodeName() string {
	if p.HostnameAsFQDN && p.Domain() != "" {
		return p.Hostname + "." + p.Domain()
	}
	return p.Hostname
}

// Presence is the record that a living pod publishes for names and Services.
type Presence struct {
	UID       string            `json:"uid"`
	Hostname  string            `json:"hostname"`
	Subdomain string            `json:"subdomain,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Addresses []string          `json:"addresses,omitempty"`
	Ready     bool              `json:"ready,omitempty"` // and not being stopped
	Ports     []Port            `json:"ports,omitempty"` // those with names
	Stack     bool              `json:"stack,omitempty"` // its network is a user-space stack
}
