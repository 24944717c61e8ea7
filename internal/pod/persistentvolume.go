package pod

import (
	"cmp"
	"fmt"
	"slices"
)

// PersistentVolume is storage that the user provides, to which one claim may be bound.
type PersistentVolume struct {
	Capacity        int64    `json:"capacity"` // bytes; not enforced
	AccessModes     []string `json:"accessModes"`
	Class           string   `json:"class,omitempty"`
	AttributesClass string   `json:"attributesClass,omitempty"` // for output only
	ReclaimPolicy   string   `json:"reclaimPolicy"`             // for output only: podrun never removes its files

	Source   string `json:"source"`             // Kubernetes' name of the kind; podrun mounts "hostPath" and "local"
	Path     string `json:"path,omitempty"`     // absolute, on the host
	PathType string `json:"pathType,omitempty"` // of a hostPath volume

	// OtherNode is whether its nodeAffinity did not match this machine when it was applied.
	OtherNode bool `json:"otherNode,omitempty"`

	// Claim is the claim that the volume is bound to. It is the only record of the binding, so that
	// one write makes it. Without a UID the volume is reserved for a claim of that name.
	Claim *ClaimRef `json:"claim,omitempty"`

	Phase VolumePhase `json:"-"` // derived, for output
}

// ClaimRef names a claim.
type ClaimRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// VolumePhase is Kubernetes' phase of a PersistentVolume.
type VolumePhase string

const (
	VolumeAvailable VolumePhase = "Available"
	VolumeBound     VolumePhase = "Bound"
	VolumeReleased  VolumePhase = "Released" // its claim was deleted; it is bound to no other
)

// Mountable reports whether podrun can mount a volume of this kind.
func (v *PersistentVolume) Mountable() bool { return v.Source == "hostPath" || v.Source == "local" }

// IsBoundTo reports whether the volume is bound to a claim.
func (v *PersistentVolume) IsBoundTo(claim *Object) bool {
	return v.Claim != nil && v.Claim.UID != "" && *v.Claim == ClaimRef{claim.Namespace, claim.Name, claim.UID}
}

// isReservedFor reports whether the volume is reserved for a claim, or bound to it.
func (v *PersistentVolume) isReservedFor(claim *Object) bool {
	c := v.Claim
	return c != nil && c.Namespace == claim.Namespace && c.Name == claim.Name && (c.UID == "" || c.UID == claim.UID)
}

// mismatch returns why the volume cannot serve a claim that requests it, or "" (Kubernetes: checkVolumeSatisfyClaim).
// A claim that sets no class may have a volume of any class.
func (v *PersistentVolume) mismatch(c *Claim) string {
	switch {
	case v.OtherNode: // first, because it matters for a reserved volume too
		return "its nodeAffinity does not match this machine"
	case v.Capacity < c.Request:
		return "requested PV is too small"
	case c.Class != nil && *c.Class != v.Class:
		return "storageClassName does not match"
	case !v.hasModes(c):
		return "incompatible accessMode"
	}
	return ""
}

func (v *PersistentVolume) hasModes(c *Claim) bool {
	return !slices.ContainsFunc(c.AccessModes, func(m string) bool { return !slices.Contains(v.AccessModes, m) })
}

// BoundVolume returns the volume that a claim is bound to, or nil.
func BoundVolume(claim *Object, volumes []*Object) *Object {
	for _, v := range volumes {
		if v.PersistentVolume.IsBoundTo(claim) {
			return v
		}
	}
	return nil
}

// BindClaims binds claims to volumes by the rules of Kubernetes' PersistentVolume controller
// (syncUnboundClaim and FindMatchingVolume). It returns the volumes that it has changed.
// provisioned reports whether a claim has a directory of podrun: such a claim keeps it.
//
// A claim that sets no class has podrun's own storage, as with a default StorageClass, unless it
// names a volume or has a selector, or a volume is reserved for it.
func BindClaims(claims, volumes []*Object, provisioned func(claim *Object) bool) (changed []*Object) {
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b *Object) int {
		if named := a.Claim.VolumeName != ""; named != (b.Claim.VolumeName != "") { // its volume is not given to another claim
			if named {
				return -1
			}
			return 1
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	for _, c := range claims {
		if BoundVolume(c, volumes) != nil || provisioned(c) {
			continue
		}
		if v := chooseVolume(c, volumes); v != nil {
			v.PersistentVolume.Claim = &ClaimRef{c.Namespace, c.Name, c.UID}
			v.Revision++
			changed = append(changed, v)
		}
	}
	return changed
}

// chooseVolume returns the volume to bind an unbound claim to, or nil.
func chooseVolume(claim *Object, volumes []*Object) (best *Object) {
	c := claim.Claim
	for _, o := range volumes {
		v := o.PersistentVolume
		reserved := v.isReservedFor(claim)
		switch {
		case v.Claim != nil && !reserved, c.VolumeName != "" && c.VolumeName != o.Name:
		case c.VolumeName != "":
			if reserved && !v.OtherNode || v.mismatch(c) == "" { // they name each other: nothing else is compared
				return o
			}
		case v.Capacity < c.Request || !v.hasModes(c) || v.OtherNode:
		case reserved: // class and selector do not matter
			return o
		case c.wants(o) && (best == nil || fitsBetter(v, best.PersistentVolume)):
			best = o
		}
	}
	return best
}

// wants reports whether a claim's class and selector select a volume.
func (c *Claim) wants(volume *Object) bool {
	class := ""
	if c.Class != nil {
		class = *c.Class
	} else if c.Selector == nil {
		return false
	}
	return class == volume.PersistentVolume.Class && c.Selector.Matches(volume.Labels)
}

// fitsBetter reports whether a volume is a better match than another one: it has fewer access modes,
// or is smaller.
func fitsBetter(a, b *PersistentVolume) bool {
	return cmp.Or(cmp.Compare(len(a.AccessModes), len(b.AccessModes)), cmp.Compare(a.Capacity, b.Capacity)) < 0
}

// Provisions reports whether podrun makes a directory for a claim that no volume matches. As with a
// provisioner of Kubernetes, it does not for a claim with a selector or with the class "".
func (c *Claim) Provisions() bool {
	return c.VolumeName == "" && c.Selector == nil && (c.Class == nil || *c.Class != "")
}

// WhyPending returns why a claim without a directory is bound to none of the volumes.
func WhyPending(claim *Object, volumes []*Object) string {
	c := claim.Claim
	if c.VolumeName == "" {
		return "no persistent volumes available for this claim and no storage class is set"
	}
	i := slices.IndexFunc(volumes, func(o *Object) bool { return o.Name == c.VolumeName })
	if i < 0 {
		return fmt.Sprintf("persistentvolume %q not found", c.VolumeName)
	}
	v := volumes[i].PersistentVolume
	if v.Claim != nil && !v.isReservedFor(claim) {
		return fmt.Sprintf("volume %q already bound to a different claim", c.VolumeName)
	}
	return fmt.Sprintf("cannot bind to requested volume %q: %s", c.VolumeName, v.mismatch(c))
}

// Selector selects objects by their labels. A nil Selector and one without requirements select
// every object.
type Selector struct {
	Requirements []Requirement `json:"requirements,omitempty"` // all of them must be met
}

// Requirement is a condition on one label.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"` // In, NotIn, Exists, DoesNotExist
	Values   []string `json:"values,omitempty"`
}

// Matches reports whether the selector selects an object with labels.
func (s *Selector) Matches(labels map[string]string) bool {
	return s == nil || !slices.ContainsFunc(s.Requirements, func(r Requirement) bool { return !r.isMet(labels) })
}

func (r *Requirement) isMet(labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, value)
	case "NotIn":
		return !has || !slices.Contains(r.Values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	return false
}
