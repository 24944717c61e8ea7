package describe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func (p *page) volumes(list []corev1.Volume) {
	if len(list) == 0 {
		p.row(0, "Volumes:", none)
		return
	}
	p.row(0, "Volumes:")
	for i := range list {
		p.row(1, list[i].Name+":")
		p.volume(&list[i].VolumeSource)
	}
}

func (p *page) volume(v *corev1.VolumeSource) {
	kind := func(text string) { p.row(2, "Type:", text) }
	switch {
	case v.HostPath != nil:
		p.hostPath(v.HostPath)
	case v.EmptyDir != nil:
		kind("EmptyDir (a temporary directory that shares a pod's lifetime)")
		p.row(2, "Medium:", string(v.EmptyDir.Medium))
		limit := "<unset>"
		if q := v.EmptyDir.SizeLimit; q != nil && q.Sign() > 0 {
			limit = q.String()
		}
		p.row(2, "SizeLimit:", limit)
	case v.Secret != nil:
		kind("Secret (a volume populated by a Secret)")
		p.row(2, "SecretName:", v.Secret.SecretName)
		p.row(2, "Optional:", optional(v.Secret.Optional))
	case v.ConfigMap != nil:
		kind("ConfigMap (a volume populated by a ConfigMap)")
		p.row(2, "Name:", v.ConfigMap.Name)
		p.row(2, "Optional:", optional(v.ConfigMap.Optional))
	case v.PersistentVolumeClaim != nil:
		kind("PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)")
		p.row(2, "ClaimName:", v.PersistentVolumeClaim.ClaimName)
		p.row(2, "ReadOnly:", fmt.Sprint(v.PersistentVolumeClaim.ReadOnly))
	case v.Ephemeral != nil:
		kind("EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)")
	case v.Projected != nil:
		kind("Projected (a volume that contains injected data from multiple sources)")
		p.projected(v.Projected)
	case v.DownwardAPI != nil:
		kind("DownwardAPI (a volume populated by information about the pod)")
		p.row(2, "Items:")
		p.items(v.DownwardAPI.Items)
	case v.Image != nil:
		kind("Image (a container image or OCI artifact)")
		p.row(2, "Reference:", v.Image.Reference)
		p.row(2, "PullPolicy:", string(v.Image.PullPolicy))
	default:
		p.row(2, "<unknown>")
	}
}

func (p *page) hostPath(h *corev1.HostPathVolumeSource) {
	p.row(2, "Type:", "HostPath (bare host directory volume)")
	p.row(2, "Path:", h.Path)
	p.row(2, "HostPathType:", string(ptr.Deref(h.Type, none)))
}

func (p *page) persistentVolume(o *corev1.PersistentVolume) {
	s := &o.Spec
	p.row(0, "Name:", o.Name)
	p.labelsAndAnnotations(o)
	p.row(0, "Finalizers:", fmt.Sprint(o.Finalizers))
	class := s.StorageClassName
	if name, ok := o.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = name
	}
	p.row(0, "StorageClass:", class)
	p.row(0, "Status:", string(o.Status.Phase))
	claim := ""
	if c := s.ClaimRef; c != nil {
		claim = c.Namespace + "/" + c.Name
	}
	p.row(0, "Claim:", claim)
	p.row(0, "Reclaim Policy:", string(s.PersistentVolumeReclaimPolicy))
	p.row(0, "Access Modes:", accessModes(s.AccessModes))
	rowIfSet(p, 0, "VolumeMode:", s.VolumeMode, "%s")
	p.row(0, "Capacity:", s.Capacity.Storage().String())
	p.nodeAffinity(s.NodeAffinity)
	p.row(0, "Message:", o.Status.Message)
	p.row(0, "Source:")
	switch {
	case s.HostPath != nil:
		p.hostPath(s.HostPath)
	case s.Local != nil:
		p.row(2, "Type:", "LocalVolume (a persistent volume backed by local storage on a node)")
		p.row(2, "Path:", s.Local.Path)
	default: // kubectl prints the fields of each kind
		p.row(1, "<unknown>")
	}
}

// nodeAffinity writes which nodes have a PersistentVolume (printVolumeNodeAffinity).
func (p *page) nodeAffinity(a *corev1.VolumeNodeAffinity) {
	if a == nil || a.Required == nil {
		p.row(0, "Node Affinity:", none)
		return
	}
	p.row(0, "Node Affinity:", "")
	if len(a.Required.NodeSelectorTerms) == 0 {
		p.row(1, "Required Terms:", none)
		return
	}
	p.row(1, "Required Terms:", "")
	for i, t := range a.Required.NodeSelectorTerms {
		title := fmt.Sprintf("Term %d:", i)
		if len(t.MatchExpressions) == 0 {
			p.row(2, title, none)
		}
		for _, r := range t.MatchExpressions {
			text := r.Key + " " + strings.ToLower(string(r.Operator))
			if len(r.Values) > 0 {
				text += " [" + strings.Join(r.Values, ", ") + "]"
			}
			p.row(2, title, text)
			title = ""
		}
	}
}

func (p *page) projected(v *corev1.ProjectedVolumeSource) {
	for _, s := range v.Sources {
		switch {
		case s.Secret != nil:
			p.row(2, "SecretName:", s.Secret.Name)
			p.row(2, "Optional:", optional(s.Secret.Optional))
		case s.DownwardAPI != nil:
			p.row(2, "DownwardAPI:", "true")
		case s.ConfigMap != nil:
			p.row(2, "ConfigMapName:", s.ConfigMap.Name)
			p.row(2, "Optional:", optional(s.ConfigMap.Optional))
		}
	}
}

func (p *page) items(list []corev1.DownwardAPIVolumeFile) {
	for _, item := range list {
		if item.FieldRef != nil {
			p.row(3, item.FieldRef.FieldPath+" -> "+item.Path)
		}
		if item.ResourceFieldRef != nil {
			p.row(3, item.ResourceFieldRef.Resource+" -> "+item.Path)
		}
	}
}
