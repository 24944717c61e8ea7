package describe

import (
	"fmt"

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
		kind("HostPath (bare host directory volume)")
		p.row(2, "Path:", v.HostPath.Path)
		p.row(2, "HostPathType:", string(ptr.Deref(v.HostPath.Type, none)))
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
