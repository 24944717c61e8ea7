package network

import (
	"net/netip"
	"os"
	"strings"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/netns/dns"
	"github.com/podrun/podrun/netns/ipam"
	"github.com/podrun/podrun/netns/resolvconf"
)

// ResolvConf returns the content of the containers' /etc/resolv.conf, and the events about what was left
// out.
func (n *Network) ResolvConf() (string, []resolvconf.Event) {
	host, _ := os.ReadFile(dns.HostResolvConf) // the C library works without one, too
	p := resolvconf.Pod{
		Namespace: n.plan.Namespace, Policy: resolvconf.Policy(n.plan.DNS.Policy), HostNetwork: n.plan.Network == pod.NetworkHost,
		DNSConfig: resolvconf.Config{Nameservers: n.plan.DNS.Nameservers, Searches: n.plan.DNS.Searches, Options: n.plan.DNS.Options},
	}
	if p.Domain = n.plan.ClusterDomain(); n.plan.Cluster != nil {
		p.ClusterDNS = n.plan.Cluster.DNS
	}
	if n.names != nil {
		p.Resolver = []string{n.resolver.String()}
	}
	c, events := resolvconf.Build(p, resolvconf.Parse(string(host)))
	return c.String(), events
}

// HostsFile returns the kubelet's /etc/hosts (pkg/kubelet/kubelet_pods.go managedHostsFileContent,
// hostsEntriesFromHostAliases). The pod's name has its addresses or, without a network, a loopback address.
func HostsFile(plan *pod.Plan, addresses []netip.Addr) string {
	var b strings.Builder
	if plan.Network == pod.NetworkHost {
		hosts, _ := os.ReadFile("/etc/hosts") // if missing, only the aliases have names
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + string(hosts))
		writeAliases(&b, plan)
		return b.String()
	}
	b.WriteString("# Kubernetes-managed hosts file.\n" +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n")
	podAddresses := AddrStrings(addresses)
	if len(podAddresses) == 0 {
		podAddresses = []string{FallbackIP}
	}
	for _, a := range podAddresses {
		b.WriteString(a)
		if d := plan.Domain(); d != "" {
			b.WriteString("\t" + plan.Hostname + "." + d)
		}
		b.WriteString("\t" + plan.Hostname + "\n")
	}
	writeAliases(&b, plan)
	return b.String()
}

func writeAliases(b *strings.Builder, plan *pod.Plan) {
	if len(plan.HostNames) > 0 {
		host := ipam.HostLoopback.V4.String()
		if plan.Network == pod.NetworkHost {
			host = "127.0.0.1"
		}
		b.WriteString("\n# Names of the host.\n" + host + "\t" + strings.Join(plan.HostNames, "\t") + "\n")
	}
	if len(plan.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, a := range plan.HostAliases {
		b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
	}
}
