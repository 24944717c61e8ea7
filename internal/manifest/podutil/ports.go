package podutil

import (
	"errors"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/internal/pod"
)

// ResolveContainerPort resolves a port by the container's own names.
func ResolveContainerPort(c *corev1.Container, p intstr.IntOrString) (n int, ok bool) {
	if p.Type == intstr.Int {
		return p.IntValue(), true
	}
	for _, named := range c.Ports {
		if named.Name == p.StrVal {
			return int(named.ContainerPort), true
		}
	}
	return 0, false
}

// VisitPorts calls f for each port of the pod. beside reports whether its container runs at the same time as
// the others.
func VisitPorts(s *corev1.PodSpec, path *field.Path, f func(c *corev1.Container, p *corev1.ContainerPort, concurrent bool, fieldPath *field.Path)) {
	each := func(list string, containers []corev1.Container, init bool) {
		for i := range containers {
			c := &containers[i]
			for j := range c.Ports {
				f(c, &c.Ports[j], !init || IsSidecar(c), path.Child(list).Index(i).Child("ports").Index(j))
			}
		}
	}
	each("initContainers", s.InitContainers, true)
	each("containers", s.Containers, false)
}

// PlanPort converts one port of a container.
func PlanPort(c *corev1.Container, p *corev1.ContainerPort) pod.Port {
	port := pod.Port{Container: c.Name, Name: p.Name, Protocol: string(p.Protocol), Number: int(p.ContainerPort), HostPort: int(p.HostPort)}
	if a, err := netip.ParseAddr(p.HostIP); err == nil && p.HostPort != 0 {
		port.HostIP = a.Unmap().String()
	}
	return port
}

// PlanPorts returns all ports of a valid Pod.
func PlanPorts(s *corev1.PodSpec) []pod.Port {
	var list []pod.Port
	VisitPorts(s, nil, func(c *corev1.Container, p *corev1.ContainerPort, _ bool, _ *field.Path) {
		list = append(list, PlanPort(c, p))
	})
	return list
}

// PublishedPorts returns the ports that the host opens for a valid Pod.
func PublishedPorts(p *corev1.Pod) []pod.Port {
	return (&pod.Plan{Network: NetworkMode(p), Ports: PlanPorts(&p.Spec)}).Published()
}

// KeepHostPorts gives the ports of a Pod with AnnotationFreeHostPorts the ports of the host that it has already.
func KeepHostPorts(old, new *corev1.Pod) {
	_ = FillHostPorts(new, func(c *corev1.Container, p *corev1.ContainerPort) (port int32, err error) {
		VisitPorts(&old.Spec, nil, func(oldContainer *corev1.Container, had *corev1.ContainerPort, _ bool, _ *field.Path) {
			if oldContainer.Name == c.Name && had.ContainerPort == p.ContainerPort && had.Protocol == p.Protocol && had.HostIP == p.HostIP {
				port = had.HostPort
			}
		})
		return port, nil
	})
}

// FillHostPorts sets the ports of the host that a Pod with AnnotationFreeHostPorts lacks to those that free returns.
func FillHostPorts(p *corev1.Pod, free func(c *corev1.Container, p *corev1.ContainerPort) (int32, error)) error {
	if p.Annotations[AnnotationFreeHostPorts] != "true" {
		return nil
	}
	var errs []error
	VisitPorts(&p.Spec, nil, func(c *corev1.Container, port *corev1.ContainerPort, _ bool, _ *field.Path) {
		if port.HostPort == 0 && port.Protocol != corev1.ProtocolSCTP {
			n, err := free(c, port)
			port.HostPort, errs = n, append(errs, err)
		}
	})
	return errors.Join(errs...)
}
