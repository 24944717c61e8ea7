package conversion

import (
	"bytes"
	"encoding/json"

	"github.com/podrun/podrun/internal/pod"
)

// PreserveFrom copies into next, which replaces old, the fields that it keeps: those that an API server
// keeps, the addresses of a Service, and the claim of a PersistentVolume.
func PreserveFrom(old, next *pod.Object) {
	next.UID, next.CreatedAt, next.Revision, next.Owner, next.GenerateName = old.UID, old.CreatedAt, old.Revision, old.Owner, old.GenerateName
	if v := next.PersistentVolume; v != nil {
		preserveBinding(old.PersistentVolume, v)
	}
	s := next.Service
	if s == nil || s.Type == pod.ServiceExternalName || s.Headless() || old.Service.Headless() {
		return
	}
	if s.Type.OpensPorts() {
		preserveNodePorts(old.Service, s)
	}
	// A manifest that names one address keeps the other family's address, too, if it has both families.
	if had := old.Service.ClusterIPs; len(s.ClusterIPs) == 0 || len(had) > 0 && len(s.ClusterIPs) == 1 && s.ClusterIPs[0] == had[0] {
		s.ClusterIPs = had
	}
}

// preserveBinding keeps the claim that a volume is bound to.
func preserveBinding(old, next *pod.PersistentVolume) {
	c, had := next.Claim, old.Claim
	if had != nil && had.UID != "" && (c == nil || c.Namespace == had.Namespace && c.Name == had.Name && c.UID == "") {
		next.Claim = had
	}
}

// preserveNodePorts keeps the node ports that no manifest names.
func preserveNodePorts(old, next *pod.Service) {
	named := map[int32]bool{}
	for _, p := range next.Ports {
		named[p.NodePort] = true
	}
	for i := range next.Ports {
		p := &next.Ports[i]
		for _, had := range old.Ports {
			if p.NodePort == 0 && had.Port == p.Port && had.Protocol == p.Protocol && !named[had.NodePort] {
				p.NodePort = had.NodePort
			}
		}
	}
}

// Equal reports whether two objects with the same name are equal.
func Equal(old, next *pod.Object) bool {
	a, aerr := json.Marshal(old)
	b, berr := json.Marshal(next)
	return aerr == nil && berr == nil && bytes.Equal(a, b)
}
