package manifest

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/validation"
)

// PublishedPort is a range of ports of containers that the host opens, in the form of podman's --publish.
type PublishedPort struct {
	HostIP                         string // "": all addresses
	HostPort, ContainerPort, Count int
	Protocol                       corev1.Protocol
}

// ParsePublishedPort parses [IP:]HOSTPORT:PORT[/PROTOCOL], where both ports may be ranges of the same length and
// an IPv6 address is in brackets.
func ParsePublishedPort(text string) (PublishedPort, error) {
	p := PublishedPort{Protocol: corev1.ProtocolTCP}
	ports, protocol, _ := strings.Cut(text, "/")
	switch protocol {
	case "", "tcp":
	case "udp":
		p.Protocol = corev1.ProtocolUDP
	default:
		return p, fmt.Errorf("the protocol is tcp or udp, not %q", protocol)
	}
	address, ports, err := cutAddress(ports)
	if err != nil {
		return p, err
	}
	if a, err := netip.ParseAddr(address); address != "" && (err != nil || a.Zone() != "") {
		return p, fmt.Errorf("%q is no IP address", address)
	}
	if address != "0.0.0.0" { // with podman it stands for all addresses
		p.HostIP = address
	}
	host, container, both := strings.Cut(ports, ":")
	if !both || host == "" {
		return p, errors.New("podrun does not choose a host port: write HOSTPORT:PORT")
	}
	first, hostCount, err := parsePorts(host)
	if err != nil {
		return p, err
	}
	p.HostPort = first
	if p.ContainerPort, p.Count, err = parsePorts(container); err != nil {
		return p, err
	}
	if p.Count != hostCount {
		return p, fmt.Errorf("the ranges %s and %s have different lengths", host, container)
	}
	return p, nil
}

// cutAddress cuts the address before the ports, if there is one.
func cutAddress(text string) (address, ports string, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		address, ports, ok = strings.Cut(rest, "]:")
		if !ok {
			return "", "", errors.New("an IPv6 address is in brackets: [::1]:8080:80")
		}
		return address, ports, nil
	}
	if before, after, ok := strings.Cut(text, ":"); ok && strings.Contains(after, ":") {
		return before, after, nil
	}
	return "", text, nil
}

// parsePorts parses a port or a range, FIRST-LAST.
func parsePorts(text string) (first, count int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err = strconv.Atoi(from)
	last, lastErr := strconv.Atoi(to)
	if err != nil || lastErr != nil || first < 1 || last > 65535 || last < first {
		return 0, 0, fmt.Errorf("%q is no port from 1 to 65535, and no range of them", text)
	}
	return first, last - first + 1, nil
}

// Publish sets the ports of the host for ports of the pods that Load returned, instead of their hostPorts. A port
// that no container lists is added to the first container of the only pod.
func Publish(pods []Object, ports []PublishedPort) error {
	var errs []error
	for _, p := range ports {
		for i := range p.Count {
			port := corev1.ContainerPort{ContainerPort: int32(p.ContainerPort + i), HostPort: int32(p.HostPort + i), HostIP: p.HostIP, Protocol: p.Protocol}
			if publishListed(pods, port) {
				continue
			}
			if len(pods) != 1 {
				errs = append(errs, fmt.Errorf("no container of the %d pods lists the port %d/%s: add it to the ports of the one that has it", len(pods), port.ContainerPort, strings.ToLower(string(port.Protocol))))
				continue
			}
			c := &pods[0].Pod.Spec.Containers[0]
			c.Ports = append(c.Ports, port)
		}
	}
	if len(ports) == 0 {
		return nil
	}
	invalid := &Errors{}
	for i := range pods {
		for _, bad := range validation.ValidatePod(pods[i].Pod) {
			pods[i].Fail(invalid, bad.Field, bad.ErrorBody())
		}
	}
	return errors.Join(append(errs, invalid.Err())...)
}

// publishListed publishes a port of the containers that list it.
func publishListed(pods []Object, port corev1.ContainerPort) (found bool) {
	for i := range pods {
		spec := &pods[i].Pod.Spec
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for j := range list {
				for k := range list[j].Ports {
					if has := &list[j].Ports[k]; has.ContainerPort == port.ContainerPort && has.Protocol == port.Protocol {
						has.HostPort, has.HostIP, found = port.HostPort, port.HostIP, true
					}
				}
			}
		}
	}
	return found
}
