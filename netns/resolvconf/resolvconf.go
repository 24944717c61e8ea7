// Package resolvconf computes the content of a container's /etc/resolv.conf, as the kubelet does
// (pkg/kubelet/network/dns). It is pure.
//
// It differs from the kubelet in two things. Without a cluster DNS, podrun's own resolver takes its place,
// except for pods that share the host's network. And a nameserver on the host's loopback, which a pod
// with a network of its own cannot reach, is replaced by podrun's resolver, which queries it from the
// host's network.
package resolvconf

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The limits of Kubernetes (pkg/apis/core/validation).
const (
	MaxNameservers = 3
	MaxSearches    = 32
	MaxSearchChars = 2048 // of all, including the separating spaces
	maxSearch      = 253  // of one: some libraries abort on longer ones
)

// Policy is a pod's dnsPolicy; "" is ClusterFirst.
type Policy string

// The policies of Kubernetes.
const (
	ClusterFirst            Policy = "ClusterFirst"
	ClusterFirstWithHostNet Policy = "ClusterFirstWithHostNet"
	Default                 Policy = "Default"
	None                    Policy = "None"
)

// Config is the content of a resolv.conf. An option is "name" or "name:value".
type Config struct{ Nameservers, Searches, Options []string }

// Pod contains what determines a pod's file.
type Pod struct {
	Namespace   string
	Domain      string   // of the cluster
	ClusterDNS  []string // addresses of the cluster's name servers; empty: podrun's resolver
	Policy      Policy
	HostNetwork bool
	DNSConfig   Config // its dnsConfig

	// Resolver contains the addresses of podrun's resolver; empty: the pod cannot reach it.
	Resolver []string
}

// Event is a warning to be published as an event of the pod.
type Event struct{ Reason, Message string }

// Build returns the file of a pod on a host with the file host.
func Build(p Pod, host Config) (Config, []Event) {
	var events []Event
	c := Config{Searches: slices.Clone(host.Searches), Options: slices.Clone(host.Options)}
	cluster := p.Policy == ClusterFirstWithHostNet || p.Policy != Default && !p.HostNetwork
	servers := p.ClusterDNS
	if len(servers) == 0 {
		servers = p.Resolver
	}
	switch {
	case p.Policy == None:
		c = Config{}
	case cluster && len(servers) > 0:
		c.Nameservers = slices.Clone(servers)
		c.Searches = unique([]string{p.Namespace + ".svc." + p.Domain, "svc." + p.Domain, p.Domain}, host.Searches)
		c.Options = []string{"ndots:5"}
	default:
		c.Nameservers = reachable(host.Nameservers, p)
		if cluster {
			events = append(events, Event{"MissingClusterDNS", fmt.Sprintf(
				"podrun has no resolver in this pod's network and cannot create Pod using %q policy. Falling back to %q policy.", cmp.Or(p.Policy, ClusterFirst), Default)})
		}
	}
	c.Nameservers = unique(c.Nameservers, p.DNSConfig.Nameservers)
	c.Searches = unique(c.Searches, p.DNSConfig.Searches)
	c.Options = mergeOptions(c.Options, p.DNSConfig.Options)
	return c.applyLimits(events)
}

// reachable replaces nameservers that only the host reaches. A host without any nameserver uses one
// on its loopback (resolv.conf(5)).
func reachable(host []string, p Pod) []string {
	if p.HostNetwork {
		return slices.Clone(host)
	}
	if len(host) == 0 {
		return slices.Clone(p.Resolver)
	}
	var list []string
	for _, s := range host {
		a, err := netip.ParseAddr(s)
		if err != nil || a.IsLoopback() || a.IsUnspecified() || a.Zone() != "" {
			list = unique(list, p.Resolver)
			continue
		}
		list = unique(list, []string{s})
	}
	return list
}

// unique joins lists without duplicates.
func unique(lists ...[]string) []string {
	var all []string
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// mergeOptions replaces options by later ones of the same name.
func mergeOptions(lists ...[]string) []string {
	var all []string
	for _, o := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(o, ":")
		i := slices.IndexFunc(all, func(old string) bool { n, _, _ := strings.Cut(old, ":"); return n == name })
		if i < 0 {
			all = append(all, o)
		} else {
			all[i] = o
		}
	}
	return all
}

// applyLimits drops what exceeds the limits and appends an event for it.
func (c Config) applyLimits(events []Event) (Config, []Event) {
	if len(c.Nameservers) > MaxNameservers {
		c.Nameservers = c.Nameservers[:MaxNameservers]
		events = append(events, Event{"DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: " + strings.Join(c.Nameservers, " ")})
	}
	all := len(c.Searches)
	c.Searches = c.Searches[:min(all, MaxSearches)]
	c.Searches = slices.DeleteFunc(slices.Clone(c.Searches), func(s string) bool { return len(s) > maxSearch })
	for len(strings.Join(c.Searches, " ")) > MaxSearchChars {
		c.Searches = c.Searches[:len(c.Searches)-1]
	}
	if len(c.Searches) < all {
		events = append(events, Event{"DNSConfigForming", "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(c.Searches, " ")})
	}
	return c, events
}

// String formats the file in containerd's order.
func (c Config) String() string {
	var b strings.Builder
	if len(c.Searches) > 0 {
		b.WriteString("search " + strings.Join(c.Searches, " ") + "\n")
	}
	for _, n := range c.Nameservers {
		b.WriteString("nameserver " + n + "\n")
	}
	if len(c.Options) > 0 {
		b.WriteString("options " + strings.Join(c.Options, " ") + "\n")
	}
	return b.String()
}

// Parse reads a host's file. It skips lines without meaning, as resolvers do.
func Parse(text string) Config {
	var c Config
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' || f[0][0] == ';' {
			continue
		}
		switch f[0] {
		case "nameserver":
			if len(f) > 1 {
				c.Nameservers = append(c.Nameservers, f[1])
			}
		case "search", "domain": // the last of them counts
			c.Searches = nil
			for _, s := range f[1:] {
				if s != "." {
					s = strings.TrimSuffix(s, ".")
				}
				c.Searches = append(c.Searches, s)
			}
		case "options":
			c.Options = mergeOptions(c.Options, f[1:])
		}
	}
	return c
}
