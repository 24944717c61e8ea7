package podutil

import (
	"iter"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsSidecar reports whether an init container keeps running beside the app containers (KEP-753).
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// IsSidecarOf reports whether c is an init container of p that keeps running. An app container with the same
// restartPolicy is no sidecar: it is restarted by its own policy (KEP-5307).
func IsSidecarOf(p *corev1.Pod, c *corev1.Container) bool {
	return IsSidecar(c) && slices.ContainsFunc(p.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

// Containers visits the init containers and then the app containers.
func Containers(s *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// EphemeralContainers returns a pod's ephemeral containers, as containers.
func EphemeralContainers(p *corev1.Pod) (list []corev1.Container) {
	for _, c := range p.Spec.EphemeralContainers {
		list = append(list, corev1.Container(c.EphemeralContainerCommon))
	}
	return list
}

// ContainerNames lists the names of all containers, ephemeral ones included.
func ContainerNames(p *corev1.Pod) (names []string) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers, EphemeralContainers(p)} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}

// Probes returns the three probes; each may be nil.
func Probes(c *corev1.Container) []*corev1.Probe {
	return []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe}
}

// Hooks returns the two hooks; each may be nil.
func Hooks(c *corev1.Container) []*corev1.LifecycleHandler {
	if c.Lifecycle == nil {
		return nil
	}
	return []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop}
}

// MountPoint returns the absolute path of a mountPath. A relative one begins at the root, as in the kubelet.
func MountPoint(mountPath string) string { return path.Clean("/" + mountPath) }
