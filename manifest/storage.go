package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/podrun/podrun/pod"
)

// storageLimits are what a Pod may keep on disk, in the order and with the messages
// of the kubelet (localStorageEviction in pkg/kubelet/eviction): each emptyDir, then
// the pod as a whole, then the containers, sidecars included, that stay.
func storageLimits(p *corev1.Pod) []pod.Limit {
	var limits []pod.Limit
	for _, v := range p.Spec.Volumes {
		e := v.EmptyDir
		if e == nil || e.Medium == corev1.StorageMediumMemory || e.SizeLimit == nil || e.SizeLimit.Sign() != 1 {
			continue
		}
		limits = append(limits, pod.Limit{Kind: pod.VolumeLimit, Name: v.Name, Bytes: e.SizeLimit.Value(),
			Message: fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, e.SizeLimit.String())})
	}
	if q, ok := helpers.PodLimits(p, helpers.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]; ok {
		limits = append(limits, pod.Limit{Kind: pod.PodLimit, Bytes: q.Value(),
			Message: fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", q.String())})
	}
	add := func(c *corev1.Container) {
		if q := c.Resources.Limits.StorageEphemeral(); q.Value() != 0 {
			limits = append(limits, pod.Limit{Kind: pod.ContainerLimit, Name: c.Name, Bytes: q.Value(),
				Message: fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, q.String())})
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; sidecar(c) {
			add(c)
		}
	}
	return limits
}
