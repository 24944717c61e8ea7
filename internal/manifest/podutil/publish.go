package podutil

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PublishedPort is a port of containers that the host opens, or a range of ports, in the form of podman's --publish.
type PublishedPort struct {
	HostIP                         string // as it is written, but without brackets; "" if there is none
	HostPort, ContainerPort, Count int    // HostPort is 0 if there is none
	Protocol                       corev1.Protocol
}

// ParsePublishedPort parses [IP:][HOSTPORT:]PORT[/PROTOCOL], where both ports may be ranges of the same length.
func ParsePublishedPort(text string) (PublishedPort, error) {
	p := PublishedPort{Protocol: corev1.ProtocolTCP}
	numbers, protocol, _ := strings.Cut(text, "/")
	switch protocol {
	case "", "tcp":
	case "udp":
		p.Protocol = corev1.ProtocolUDP
	default:
		return p, fmt.Errorf("the protocol must be tcp or udp, not %q", protocol)
	}
	rest, container := cutLast(numbers)
	ip, host := cutLast(rest)
	if strings.HasPrefix(ip, "[") && strings.HasSuffix(ip, "]") {
		ip = ip[1 : len(ip)-1]
	}
	if a, err := netip.ParseAddr(ip); ip != "" && (err != nil || a.Zone() != "") {
		return p, fmt.Errorf("%q is not an IP address", ip)
	}
	p.HostIP = ip
	var err error
	if p.ContainerPort, p.Count, err = parseRange(container); err != nil || host == "" {
		return p, err
	}
	count := 0
	if p.HostPort, count, err = parseRange(host); err != nil {
		return p, err
	}
	if count != p.Count {
		return p, fmt.Errorf("the ranges %s and %s have different lengths", host, container)
	}
	return p, nil
}

// cutLast cuts at the last colon. Without a colon everything is after it.
func cutLast(text string) (before, after string) {
	i := strings.LastIndexByte(text, ':')
	return text[:max(i, 0)], text[i+1:]
}

// parseRange parses a port, or FIRST-LAST.
func parseRange(text string) (first, count int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 16)
	b, lastErr := strconv.ParseUint(to, 10, 16)
	if err != nil || lastErr != nil || a < 1 || b < a {
		return 0, 0, fmt.Errorf("%q is not a port from 1 to 65535, and not a range of ports", text)
	}
	return int(a), int(b-a) + 1, nil
}

// Ports returns the ports as a container lists them.
func (p PublishedPort) Ports() (list []corev1.ContainerPort) {
	for i := range int32(p.Count) {
		port := corev1.ContainerPort{ContainerPort: int32(p.ContainerPort) + i, HostIP: p.HostIP, Protocol: p.Protocol}
		if p.HostPort != 0 {
			port.HostPort = int32(p.HostPort) + i
		}
		list = append(list, port)
	}
	return list
}
