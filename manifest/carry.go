package manifest

import (
	"bytes"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// Carry gives an object that is to replace another of its name what it keeps of it: what
// an API server would not let go, and the addresses of a Service.
func Carry(old, next *pod.Object) {
	next.UID, next.CreatedAt, next.Revision, next.Owner = old.UID, old.CreatedAt, old.Revision, old.Owner
	s := next.Service
	if s == nil || s.Type == pod.ServiceExternalName || s.Headless() || old.Service.Headless() {
		return
	}
	if s.Type.OpensPorts() {
		carryPorts(old.Service, s)
	}
	// One address that is named has brought the other family's with it.
	if had := old.Service.ClusterIPs; len(s.ClusterIPs) == 0 || len(had) > 0 && len(s.ClusterIPs) == 1 && s.ClusterIPs[0] == had[0] {
		s.ClusterIPs = had
	}
}

// carryPorts keeps the ports of the machine that nobody has named.
func carryPorts(old, next *pod.Service) {
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

// SameStored says whether an object is what another of its name is already.
func SameStored(old, next *pod.Object) bool {
	a, aerr := json.Marshal(old)
	b, berr := json.Marshal(next)
	return aerr == nil && berr == nil && bytes.Equal(a, b)
}

// sameData compares two maps of text or bytes; no map is an empty one.
func sameData[V string | []byte](a, b map[string]V) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || string(other) != string(value) {
			return false
		}
	}
	return true
}

// storedUpdate checks a change of an object as the API server checks an update
// (ValidateConfigMapUpdate and the like in pkg/apis/core/validation of Kubernetes).
func storedUpdate(old, next *pod.Object) field.ErrorList {
	var errs field.ErrorList
	fixed := func(name string) {
		errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
	}
	switch {
	case old.ConfigMap != nil && next.ConfigMap != nil && old.ConfigMap.Immutable:
		a, b := old.ConfigMap, next.ConfigMap
		if !b.Immutable {
			fixed("immutable")
		}
		if !sameData(a.Data, b.Data) {
			fixed("data")
		}
		if !sameData(a.BinaryData, b.BinaryData) {
			fixed("binaryData")
		}
	case old.Secret != nil && next.Secret != nil:
		a, b := old.Secret, next.Secret
		if a.Type != b.Type {
			errs = append(errs, field.Invalid(field.NewPath("type"), b.Type, "field is immutable"))
		}
		if a.Immutable && !b.Immutable {
			fixed("immutable")
		}
		if a.Immutable && !sameData(a.Data, b.Data) {
			fixed("data")
		}
	case old.Claim != nil && next.Claim != nil:
		errs = claimUpdate(old.Claim, next.Claim)
	case old.Service != nil && next.Service != nil:
		errs = serviceUpdate(old.Service, next.Service)
	case old.Kind == next.Kind && old.Secret == nil:
		errs = workloadUpdate(old, next)
	}
	return errs
}

// claimUpdate lets a claim grow, and nothing else.
func claimUpdate(old, next *pod.Claim) field.ErrorList {
	spec := field.NewPath("spec")
	if !slices.Equal(old.AccessModes, next.AccessModes) {
		return field.ErrorList{field.Forbidden(spec, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")}
	}
	if next.Request < old.Request {
		return field.ErrorList{field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity")}
	}
	return nil
}

// serviceUpdate keeps the addresses that pods may know.
func serviceUpdate(old, next *pod.Service) field.ErrorList {
	if next.Type == pod.ServiceExternalName || old.Type == pod.ServiceExternalName || len(old.ClusterIPs) == 0 || len(next.ClusterIPs) == 0 {
		return nil
	}
	if old.ClusterIPs[0] != next.ClusterIPs[0] {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), next.ClusterIPs, "may not change once set")}
	}
	return nil
}
