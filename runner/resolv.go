package runner

import (
	"net/netip"
	"os"
	"strings"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/netns/names"
	"github.com/podrun/podrun/netns/resolvconf"
	"github.com/podrun/podrun/pod"
)

// resolvFile is what containers find at /etc/resolv.conf, and what the pod's events tell
// about it.
func (s *sandbox) resolvFile() (string, []resolvconf.Event) {
	host, _ := os.ReadFile(names.HostFile) // the C library does without one, too
	p := resolvconf.Pod{
		Namespace: s.plan.Namespace, Policy: resolvconf.Policy(s.plan.DNS.Policy), HostNetwork: s.plan.Network == pod.NetworkHost,
		Own: resolvconf.Config{Nameservers: s.plan.DNS.Nameservers, Searches: s.plan.DNS.Searches, Options: s.plan.DNS.Options},
	}
	if s.names != nil {
		p.Resolver = []string{s.resolver()}
	}
	c, events := resolvconf.For(p, resolvconf.Parse(string(host)))
	return c.String(), events
}

// noteNames tells the pod's events what had to be left out.
func (e *engine) noteNames(events []resolvconf.Event) {
	for _, ev := range events {
		e.emit(lifecycle.Event{Kind: lifecycle.Warned, Reason: ev.Reason, Message: ev.Message})
	}
}

// hostsFile is the kubelet's (pkg/kubelet/kubelet_pods.go managedHostsFileContent,
// hostsEntriesFromHostAliases), with the pod's name on its addresses, or, without a
// network, on one of its loopback.
func hostsFile(plan *pod.Plan, addresses []netip.Addr) string {
	var b strings.Builder
	if plan.Network == pod.NetworkHost {
		own, _ := os.ReadFile("/etc/hosts") // without one, names are those of the aliases
		b.WriteString("# Kubernetes-managed hosts file (host network).\n" + string(own))
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
	own := texts(addresses)
	if len(own) == 0 {
		own = []string{podAddress}
	}
	for _, a := range own {
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
	if len(plan.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, a := range plan.HostAliases {
		b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
	}
}
