package run

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// setPorts adds the ports of -p.
func (o *options) setPorts(_ *corev1.Pod, c *corev1.Container) error {
	for _, word := range o.ports {
		port, err := parsePort(word)
		if err != nil {
			return err
		}
		c.Ports = append(c.Ports, port)
	}
	return nil
}

// parsePort parses [IP:][HOST:]CONTAINER[/PROTOCOL]. Without HOST it chooses a free port of this machine.
func parsePort(word string) (port corev1.ContainerPort, err error) {
	numbers, protocol, _ := strings.Cut(word, "/")
	switch protocol {
	case "", "tcp":
		port.Protocol = corev1.ProtocolTCP
	case "udp":
		port.Protocol = corev1.ProtocolUDP
	default:
		return port, usageErrorf("-p %s: the protocol must be tcp or udp, not %q", word, protocol)
	}
	parts := strings.Split(numbers, ":")
	host := ""
	if n := len(parts); n > 1 {
		host = parts[n-2]
		if n > 2 {
			port.HostIP = strings.Trim(strings.Join(parts[:n-2], ":"), "[]")
			if net.ParseIP(port.HostIP) == nil {
				return port, usageErrorf("-p %s: %q is not an IP address", word, port.HostIP)
			}
		}
	}
	for text, number := range map[*string]*int32{&parts[len(parts)-1]: &port.ContainerPort, &host: &port.HostPort} {
		if *text == "" && text == &host {
			continue
		}
		n, err := strconv.ParseUint(*text, 10, 16)
		switch {
		case strings.Contains(*text, "-"):
			return port, usageErrorf("-p %s: podrun publishes no ranges: use -p for each port", word)
		case err != nil || n == 0:
			return port, usageErrorf("-p %s: %q is not a port: use [IP:][HOST:]CONTAINER[/udp]", word, *text)
		}
		*number = int32(n)
	}
	if host == "" {
		port.HostPort, err = freePort(port)
	}
	return port, err
}

// freePort returns a port of this machine that is free now.
func freePort(of corev1.ContainerPort) (int32, error) {
	address := net.JoinHostPort(of.HostIP, "0")
	if of.Protocol == corev1.ProtocolUDP {
		conn, err := net.ListenPacket("udp", address)
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		defer conn.Close()
		return int32(conn.LocalAddr().(*net.UDPAddr).Port), nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port), nil
}
