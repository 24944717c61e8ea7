package compose

import (
	"encoding/json"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// onNetwork reports whether a service has the network of pods.
func onNetwork(s types.ServiceConfig) bool {
	return slices.Contains([]string{"", "bridge"}, s.NetworkMode)
}

// setNamespaces sets which namespaces of the host the pod has.
func (s *service) setNamespaces() {
	if s.Pid != "" && s.Pid != "host" {
		s.refuse(s.at("pid"), "is refused: use host, not %s; containers of one Pod share processes with shareProcessNamespace", s.Pid)
	}
	if !slices.Contains([]string{"", "host", "private", "shareable"}, s.Ipc) {
		s.refuse(s.at("ipc"), "is refused: use host or private, not %s; containers of one Pod share it", s.Ipc)
	}
	s.refuseShared(s.Pid != "" && s.first.Pid != s.Pid, "pid")
	s.refuseShared(s.Ipc == "host" && s.first.Ipc != s.Ipc, "ipc")
	s.spec.set("hostPID", s.Pid == "host")
	s.spec.set("hostIPC", s.Ipc == "host")
	s.spec.set("shareProcessNamespace", s.Init != nil && *s.Init && s.first.Pid != "host")
	s.setHostname()
	for _, name := range slices.Sorted(maps.Keys(s.Sysctls)) {
		key, value := "sysctl "+name, s.Sysctls[name]
		if strings.HasPrefix(name, "net.") && s.first.NetworkMode != "host" {
			s.annotations[annotationNetSysctls] = "true"
		}
		if other, set := s.setBy[key]; set {
			s.refuseShared(s.project.Services[other].Sysctls[name] != value, "sysctls")
			continue
		}
		s.setBy[key] = s.Name
		s.sysctls = append(s.sysctls, object{"name": name, "value": value})
	}
}

// checkAddresses refuses a fixed address of a service that the files use elsewhere: the service has another address.
func (c *converter) checkAddresses() {
	text, _ := json.Marshal(c.objects) // of texts and numbers
	for _, name := range c.project.ServiceNames() {
		networks := c.project.Services[name].Networks
		for _, network := range slices.Sorted(maps.Keys(networks)) {
			if networks[network] == nil {
				continue
			}
			for _, a := range [][2]string{{"ipv4_address", networks[network].Ipv4Address}, {"ipv6_address", networks[network].Ipv6Address}} {
				if a[1] != "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(a[1])+`\b`).Match(text) {
					c.refuse([]string{"services", name, "networks", network, a[0]}, "is refused: "+ownNames+", and another value of the files has this one: use the name %s", name)
				}
			}
		}
	}
}

// setHostname sets the host name. Kubernetes has hostname for one label and hostnameOverride for several; both are in
// lower case.
func (s *service) setHostname() {
	s.refuseShared(s.Hostname != "", "hostname")
	name := strings.ToLower(s.Hostname)
	switch {
	case s.Hostname == "" || !s.ownPod():
	case s.NetworkMode == "host":
		s.warn(s.at("hostname"), "has no effect with network_mode: host: the pod has the host's name")
	case !isName(name) || len(name) > maxHostname:
		s.refuse(s.at("hostname"), "is refused: use letters, digits, - and ., at most %d characters, not %s", maxHostname, s.Hostname)
	default:
		labels := strings.Split(name, ".")
		for i := range labels {
			labels[i] = api.Label(labels[i])
		}
		if name = strings.Join(labels, "."); name != s.Hostname {
			s.warn(s.at("hostname"), "becomes %s", name)
		}
		if len(labels) == 1 {
			s.spec["hostname"] = name
		} else {
			s.spec["hostnameOverride"] = name
		}
	}
}

// maxHostname is the maximum length of a host name (the field hostnameOverride, and the kernel).
const maxHostname = 64

func (s *service) setNetwork() {
	switch {
	case onNetwork(s.ServiceConfig), joins(s.ServiceConfig):
	case s.NetworkMode == "host":
		s.spec["hostNetwork"] = true
	case s.NetworkMode == "none":
		s.annotations[annotationNetwork] = "none"
	default:
		s.refuse(s.at("network_mode"), "is refused: use bridge, host, none, service:NAME or container:NAME, not %s", s.NetworkMode)
	}
	s.setHosts()
	s.refuseShared(len(s.DNS) > 0, "dns")
	s.refuseShared(len(s.DNSSearch) > 0, "dns_search")
	s.refuseShared(len(s.DNSOpts) > 0, "dns_opt")
	if !s.ownPod() {
		return
	}
	dns := object{}
	dns.set("searches", []string(s.DNSSearch))
	dns.set("options", dnsOptions(s.DNSOpts))
	if s.NetworkMode == "host" && len(s.DNS) > 0 {
		s.spec["dnsPolicy"] = "None"
		dns.set("nameservers", []string(s.DNS))
	} else {
		s.setNameServers()
	}
	s.spec.set("dnsConfig", dns)
}

// setNameServers lets podrun's resolver, which has the names of services, query the name servers, as docker's does.
func (s *service) setNameServers() {
	var list []string
	for _, server := range s.DNS {
		switch a, err := netip.ParseAddr(server); {
		case err != nil || a.Zone() != "":
			s.refuse(s.at("dns"), "is refused: %s is no address of a name server", server)
		case a.IsLoopback() || a.IsUnspecified():
			s.warn(s.at("dns"), "has no effect for %s: podrun's resolver, which has the names of services, does not reach the container's loopback", server)
		default:
			list = append(list, a.String())
		}
	}
	s.annotations.set(annotationDNSServers, strings.Join(list, ","))
}

func dnsOptions(list []string) (out []object) {
	for _, option := range list {
		name, value, ok := strings.Cut(option, ":")
		port := object{"name": name}
		if ok {
			port["value"] = value
		}
		out = append(out, port)
	}
	return out
}

// hostGateway is docker's word for an address of the host.
const hostGateway = "host-gateway"

// setHosts makes hostAliases of extra_hosts.
func (s *service) setHosts() {
	s.refuseShared(len(s.ExtraHosts) > 0, "extra_hosts")
	byIP := map[string][]string{}
	var gateway []string
	for _, name := range slices.Sorted(maps.Keys(s.ExtraHosts)) {
		for _, ip := range s.ExtraHosts[name] {
			switch _, err := netip.ParseAddr(ip); {
			case ip == hostGateway:
				gateway = append(gateway, name)
			case err != nil:
				s.refuse(s.at("extra_hosts", name), "is refused: %s is no address; %s is the host's", ip, hostGateway)
			default:
				byIP[ip] = append(byIP[ip], name)
			}
		}
	}
	if len(gateway) > 0 {
		s.annotations[annotationHostNames] = strings.Join(gateway, ",")
		s.annotations[annotationLoopback] = "true"
	}
	var list []object
	for _, ip := range slices.Sorted(maps.Keys(byIP)) {
		list = append(list, object{"ip": ip, "hostnames": byIP[ip]})
	}
	s.spec.set("hostAliases", list)
}

// setPorts publishes ports on the host.
func (s *service) setPorts() {
	s.refuseShared(len(s.Ports) > 0, "ports")
	if !s.ownPod() {
		return
	}
	var list []object
	for i, p := range s.Ports {
		keyPath := s.at("ports", strconv.Itoa(i))
		port := object{"containerPort": p.Target}
		published, err := strconv.ParseUint(p.Published, 10, 16)
		switch {
		case p.Published == "" || published == 0 && err == nil:
			if s.NetworkMode != "host" { // there the port of the container is the host's
				s.annotations[annotationFreePorts] = "true"
			}
		case err != nil:
			s.refuse(keyPath, "is refused: name one port of the host, not %s", p.Published)
		case s.NetworkMode == "host" && uint32(published) != p.Target:
			s.refuse(keyPath, "is refused: with network_mode: host the port of the host is the container's, %d", p.Target)
		default:
			port["hostPort"] = published
		}
		port.set("name", p.Name)
		port.set("hostIP", p.HostIP)
		if p.Protocol != "" && p.Protocol != "tcp" {
			port.set("protocol", strings.ToUpper(p.Protocol))
		}
		list = append(list, port)
	}
	s.container.set("ports", list)
}
