package pod

// NetworkPolicy restricts the connections of the pods of its namespace that it selects.
type NetworkPolicy struct {
	Pods    Selector              `json:"pods"`
	Ingress *NetworkPolicyTraffic `json:"ingress,omitempty"` // nil: the policy does not concern ingress
	Egress  *NetworkPolicyTraffic `json:"egress,omitempty"`
}

// NetworkPolicyTraffic is the traffic of one direction that a NetworkPolicy allows.
type NetworkPolicyTraffic struct {
	Rules []NetworkPolicyRule `json:"rules,omitempty"`
}

// NetworkPolicyRule allows connections with any of its peers to any of its ports.
type NetworkPolicyRule struct {
	Peers []NetworkPolicyPeer `json:"peers,omitempty"` // empty: everybody
	Ports []NetworkPolicyPort `json:"ports,omitempty"` // empty: all ports of all protocols
}

// NetworkPolicyPeer is a group of pods, or a block of addresses.
type NetworkPolicyPeer struct {
	Pods       *Selector `json:"pods,omitempty"`       // nil: all pods of the namespaces
	Namespaces *Selector `json:"namespaces,omitempty"` // nil: the policy's own
	CIDR       string    `json:"cidr,omitempty"`       // "": pods
	Except     []string  `json:"except,omitempty"`     // parts of CIDR that are excluded
}

// NetworkPolicyPort is a range of ports of a protocol, or, if Name is set, a named port of the
// pod that is connected to.
type NetworkPolicyPort struct {
	Protocol string `json:"protocol"` // "TCP", "UDP"
	Name     string `json:"name,omitempty"`
	First    int32  `json:"first,omitempty"`
	Last     int32  `json:"last,omitempty"`
}
