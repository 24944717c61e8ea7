package compose

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// checkNetworks reports what a network cannot be, and that pods of different networks reach each other.
func (c *converter) checkNetworks() {
	for name, n := range c.project.Networks {
		if !slices.Contains([]string{"", "bridge"}, n.Driver) {
			c.refuse([]string{"networks", name, "driver"}, "is refused: podrun has one network; network_mode: host gives a pod the host's network")
		}
	}
	for _, a := range c.project.ServiceNames() {
		for _, b := range c.project.ServiceNames() {
			if a < b && !c.share(a, b) {
				c.warn([]string{"services", b, "networks"}, "separates nothing: %s and %s reach each other", a, b)
				return
			}
		}
	}
}

// share reports whether two services have a network in common, or one has none.
func (c *converter) share(a, b string) bool {
	of, other := c.project.Services[a].Networks, c.project.Services[b].Networks
	for name := range of {
		if _, ok := other[name]; ok {
			return true
		}
	}
	return len(of) == 0 || len(other) == 0
}

// names makes a Service for each name by which other services reach this one. Each is headless: a name
// resolves to the pods, ready or not, and every port is reachable.
func (c *converter) names(s types.ServiceConfig, taken map[string]string) {
	if !onNetwork(s) {
		return
	}
	keyPath := map[string][]string{s.Name: {"services", s.Name}}
	if s.ContainerName != "" {
		keyPath[s.ContainerName] = []string{"services", s.Name, "container_name"}
	}
	for network, config := range s.Networks {
		if config != nil {
			for i, alias := range config.Aliases {
				keyPath[alias] = []string{"services", s.Name, "networks", network, "aliases", strconv.Itoa(i)}
			}
		}
	}
	for _, other := range c.project.Services {
		for i, link := range other.Links {
			if target, alias, ok := strings.Cut(link, ":"); ok && target == s.Name {
				keyPath[alias] = []string{"services", other.Name, "links", strconv.Itoa(i)}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(keyPath)) {
		owner, isTaken := taken[name]
		if _, isService := c.project.Services[name]; isService && name != s.Name {
			owner, isTaken = name, true
		}
		switch {
		case isTaken && owner != s.Name:
			c.refuse(keyPath[name], "is refused: %s is also a name of the service %s", name, owner)
		case !dnsLabel(name) && name != s.Name: // pods reports the name of the service
			c.refuse(keyPath[name], "is refused: %s cannot be the name of a Service: use lower case letters, digits and -", name)
		case dnsLabel(name):
			taken[name] = s.Name
			c.add("v1", "Service", name, object{"spec": object{
				"clusterIP": "None", "publishNotReadyAddresses": true,
				"selector": object{labelProject: c.project.Name, labelService: s.Name},
			}})
		}
	}
}

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
	s.spec.set("hostPID", s.Pid == "host")
	s.spec.set("hostIPC", s.Ipc == "host")
	s.spec.set("shareProcessNamespace", s.Init != nil && *s.Init && s.Pid != "host")
	if s.Hostname != "" && !dnsLabel(s.Hostname) {
		s.refuse(s.at("hostname"), "is refused: use lower case letters, digits and -, not %s", s.Hostname)
	}
	s.spec.set("hostname", s.Hostname)
	var list []object
	for _, name := range slices.Sorted(maps.Keys(s.Sysctls)) {
		list = append(list, object{"name": name, "value": s.Sysctls[name]})
	}
	s.podSecurity.set("sysctls", list)
}

func (s *service) setNetwork() {
	switch {
	case onNetwork(s.ServiceConfig):
	case s.NetworkMode == "host":
		s.spec["hostNetwork"] = true
	case s.NetworkMode == "none":
		s.annotations[annotationNetwork] = "none"
	default:
		s.refuse(s.at("network_mode"), "is refused: use host, none or bridge, not %s; containers of one Pod share its network: podrun convert prints one to begin with", s.NetworkMode)
	}
	s.setHosts()
	dns := object{}
	dns.set("searches", []string(s.DNSSearch))
	dns.set("options", dnsOptions(s.DNSOpts))
	if len(s.DNS) > 0 {
		if s.NetworkMode != "host" {
			s.refuse(s.at("dns"), "is refused without network_mode: host: the names of services would not resolve")
		}
		s.spec["dnsPolicy"] = "None"
		dns.set("nameservers", []string(s.DNS))
	}
	s.spec.set("dnsConfig", dns)
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

// setHosts makes hostAliases of extra_hosts.
func (s *service) setHosts() {
	byIP := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.ExtraHosts)) {
		for _, ip := range s.ExtraHosts[name] {
			if _, err := netip.ParseAddr(ip); err != nil {
				s.refuse(s.at("extra_hosts", name), "is refused: %s is no address; the label podrun.dev/host-loopback: \"true\" makes the host's servers reachable as host.podrun.internal", ip)
				return
			}
			byIP[ip] = append(byIP[ip], name)
		}
	}
	var list []object
	for _, ip := range slices.Sorted(maps.Keys(byIP)) {
		list = append(list, object{"ip": ip, "hostnames": byIP[ip]})
	}
	s.spec.set("hostAliases", list)
}

// setPorts publishes ports on the host.
func (s *service) setPorts() {
	var list []object
	for i, p := range s.Ports {
		keyPath := s.at("ports", strconv.Itoa(i))
		published, err := strconv.ParseUint(p.Published, 10, 16)
		switch {
		case p.Published == "" || published == 0 && err == nil: // Kubernetes publishes no port 0
			s.refuse(keyPath, "is refused without a port of the host: write %d:%[1]d, or expose to reach it from other services only", p.Target)
		case err != nil:
			s.refuse(keyPath, "is refused: name one port of the host, not %s", p.Published)
		case s.NetworkMode == "host" && uint32(published) != p.Target:
			s.refuse(keyPath, "is refused: with network_mode: host the port of the host is the container's, %d", p.Target)
		}
		port := object{"containerPort": p.Target, "hostPort": published}
		port.set("name", p.Name)
		port.set("hostIP", p.HostIP)
		if p.Protocol != "" && p.Protocol != "tcp" {
			port.set("protocol", strings.ToUpper(p.Protocol))
		}
		list = append(list, port)
	}
	s.container.set("ports", list)
}
