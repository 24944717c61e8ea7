package manifest

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		switch msgs := validation.IsValidPortName(p.Name); {
		case p.Name == "":
		case len(msgs) > 0:
			errs = append(errs, named(p.Name, at.Child("name"), validation.IsValidPortName)...)
		case names.Has(p.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		default:
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, port(p.ContainerPort, at.Child("containerPort"))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, port(p.HostPort, at.Child("hostPort"))...)
			if p.Protocol == corev1.ProtocolSCTP {
				errs = append(errs, field.Forbidden(at.Child("hostPort"), "podrun opens ports of TCP and UDP on the host, none of SCTP"))
			}
		}
		if p.HostIP != "" {
			if _, err := netip.ParseAddr(p.HostIP); err != nil {
				errs = append(errs, field.Invalid(at.Child("hostIP"), p.HostIP, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
			}
		}
		errs = append(errs, oneOf(p.Protocol, at.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	}
	return errs
}

// forPorts calls f for each port of the pod, with whether its container runs beside the
// others or has ended before them.
func forPorts(s *corev1.PodSpec, path *field.Path, f func(c *corev1.Container, p *corev1.ContainerPort, beside bool, at *field.Path)) {
	each := func(list string, containers []corev1.Container, init bool) {
		for i := range containers {
			c := &containers[i]
			for j := range c.Ports {
				f(c, &c.Ports[j], !init || sidecar(c), path.Child(list).Index(i).Child("ports").Index(j))
			}
		}
	}
	each("initContainers", s.InitContainers, true)
	each("containers", s.Containers, false)
}

// validateHostPorts checks what the machine is to open for the pod (API server:
// checkHostPortConflicts, validateHostNetwork). Beyond that, a port on all addresses
// leaves none of the number to others.
func validateHostPorts(s *corev1.PodSpec, hostNetwork bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type taken struct {
		pod.Port
		beside bool
		at     *field.Path
	}
	var before []taken
	forPorts(s, path, func(c *corev1.Container, p *corev1.ContainerPort, beside bool, at *field.Path) {
		if hostNetwork && p.HostPort != p.ContainerPort {
			errs = append(errs, field.Invalid(at.Child("hostPort"), p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			return
		}
		this := planPort(c, p)
		for _, b := range before {
			// One that has ended may leave its way in to a later one.
			if same := b.HostIP == this.HostIP && b.Number == this.Number; this.Clashes(b.Port) && (beside && b.beside || !same) {
				errs = append(errs, field.Duplicate(at.Child("hostPort"), fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)))
				break
			}
		}
		before = append(before, taken{this, beside, at})
	})
	return errs
}

// planPort converts one port of a container.
func planPort(c *corev1.Container, p *corev1.ContainerPort) pod.Port {
	port := pod.Port{Container: c.Name, Name: p.Name, Protocol: string(p.Protocol), Number: int(p.ContainerPort), HostPort: int(p.HostPort)}
	if a, err := netip.ParseAddr(p.HostIP); err == nil && p.HostPort != 0 {
		port.HostIP = a.Unmap().String()
	}
	return port
}

// planPorts are all ports of a valid Pod.
func planPorts(s *corev1.PodSpec) []pod.Port {
	var list []pod.Port
	forPorts(s, nil, func(c *corev1.Container, p *corev1.ContainerPort, _ bool, _ *field.Path) {
		list = append(list, planPort(c, p))
	})
	return list
}

// Published are the ports that the host is to open for a valid Pod.
func Published(p *corev1.Pod) []pod.Port {
	return (&pod.Plan{Network: networkMode(p), Ports: planPorts(&p.Spec)}).Published()
}

// defaultHostPorts: in the host's network a port is the host's (API server:
// setDefaultHostNetworkPorts).
func defaultHostPorts(p *corev1.Pod) {
	if !inHostNetwork(p) {
		return
	}
	forPorts(&p.Spec, nil, func(_ *corev1.Container, p *corev1.ContainerPort, _ bool, _ *field.Path) {
		if p.HostPort == 0 {
			p.HostPort = p.ContainerPort
		}
	})
}
