// Package dns answers the DNS queries of containers: names of pods and Services from the local
// catalog, everything else through the host's resolvers, which it queries from the host's
// network.
package dns

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/podrun/podrun/netns/services"
)

// The zones that podrun serves; a Kubernetes cluster may have another one than cluster.local. Names missing in them do
// not exist, and are not forwarded.
const (
	cluster  = "cluster.local"
	internal = "podrun.internal"
)

// View is one pod's view of the catalog.
type View struct {
	services.Catalog
	Namespace string         // the pod's: short names belong to it
	Domain    string         // of the names of pods and Services; "": cluster.local
	Host      []netip.Addr   // addresses of the host's loopback for this pod; empty: unreachable
	Ranges    []netip.Prefix // of pods' and Services' addresses: no other resolver has their names

	// OtherNodes: there are pods that are not in the catalog.
	OtherNodes bool
}

// domain returns the zone of the names of pods and Services.
func (v *View) domain() string { return cmp.Or(v.Domain, cluster) }

// records are the records of a name. The zero value means that the name exists without records.
type records struct {
	addresses []netip.Addr
	alias     string // CNAME
	srv       []srvTarget
	ptr       []string // names of an address
}

// srvTarget is a server of a port of a Service.
type srvTarget struct {
	name string
	port uint16
}

// lookup looks a name up, given in lower case and without the final dot. authoritative reports that no other
// resolver is to be queried: then a nil f means that the name does not exist.
func (v *View) lookup(name string) (f *records, authoritative bool) {
	labels := strings.Split(name, ".")
	if rest, ok := trimZone(labels, v.domain()); ok {
		return v.lookupCluster(rest), true
	}
	if rest, ok := trimZone(labels, internal); ok {
		return v.lookupPodrun(rest), true
	}
	if a, ok := parseReverse(labels); ok {
		return v.lookupAddress(a)
	}
	f = v.lookupShort(labels)
	return f, f != nil
}

// trimZone returns the labels before a zone's name.
func trimZone(labels []string, zone string) ([]string, bool) {
	end := strings.Split(zone, ".")
	n := len(labels) - len(end)
	if n < 0 || !slices.Equal(labels[n:], end) {
		return nil, false
	}
	return labels[:n], true
}

func (v *View) lookupPodrun(rest []string) *records {
	switch {
	case len(rest) == 0:
		return &records{}
	case len(rest) == 1 && rest[0] == "host" && len(v.Host) > 0:
		return &records{addresses: v.Host}
	}
	return nil
}

func (v *View) lookupCluster(rest []string) *records {
	if len(rest) == 0 {
		return &records{}
	}
	last := len(rest) - 1
	switch rest[last] {
	case "svc":
		return v.lookupServices(rest[:last])
	case "pod":
		return v.lookupPods(rest[:last])
	}
	return nil
}

// lookupShort looks up names without the cluster's domain: NAME, NAME.NAMESPACE,
// NAME.NAMESPACE.svc. Unknown ones are left to other resolvers.
func (v *View) lookupShort(labels []string) *records {
	last := len(labels) - 1
	if labels[last] == "svc" && last >= 2 {
		return v.lookupServices(labels[:last])
	}
	if f := v.lookupInNamespace(labels, v.Namespace); f != nil {
		return f
	}
	if last >= 1 {
		return v.lookupInNamespace(labels[:last], labels[last])
	}
	return nil
}

// lookupServices looks up names below svc.
func (v *View) lookupServices(rest []string) *records {
	if len(rest) == 0 {
		return &records{}
	}
	last := len(rest) - 1
	if f := v.lookupInNamespace(rest[:last], rest[last]); last > 0 && f != nil {
		return f
	}
	if last == 0 && v.hasNamespace(rest[0]) {
		return &records{}
	}
	return nil
}

func (v *View) hasNamespace(name string) bool {
	return slices.ContainsFunc(v.Services, func(s services.Service) bool { return s.Namespace == name }) ||
		slices.ContainsFunc(v.Pods, func(p services.Pod) bool { return p.Namespace == name })
}

// lookupInNamespace looks up names within a namespace: of Services, of their members, further names of Services, of pods.
func (v *View) lookupInNamespace(labels []string, namespace string) *records {
	if len(labels) == 0 {
		return nil
	}
	last := len(labels) - 1
	if s := v.service(labels[last], namespace); s != nil {
		switch {
		case last == 0:
			return v.serviceRecords(s, "", "")
		case last == 1 && !strings.HasPrefix(labels[0], "_"):
			if f := v.lookupMember(s, labels[0]); f != nil {
				return f
			}
		case last == 2 && strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_"):
			if f := v.serviceRecords(s, labels[0][1:], labels[1][1:]); len(f.srv) > 0 {
				return &records{srv: f.srv}
			}
		}
	}
	name := strings.Join(labels, ".")
	for i := range v.Services {
		if s := &v.Services[i]; s.Namespace == namespace && slices.Contains(s.Aliases, name) {
			return v.serviceRecords(s, "", "")
		}
	}
	return v.lookupPod(labels, namespace)
}

// lookupPod looks up a pod by its name, or, if no Service has the name of its subdomain, by its
// hostname and subdomain.
func (v *View) lookupPod(labels []string, namespace string) *records {
	name := strings.Join(labels, ".")
	f := (*records)(nil)
	for i := range v.Pods {
		p := &v.Pods[i]
		if p.Namespace != namespace {
			continue
		}
		if p.Name == name {
			return &records{addresses: p.Addresses}
		}
		if p.Subdomain != "" && p.Hostname+"."+p.Subdomain == name && v.service(p.Subdomain, namespace) == nil {
			f = merge(f, &records{addresses: p.Addresses})
		}
	}
	return f
}

func merge(f, more *records) *records {
	if f == nil {
		return more
	}
	f.addresses = slices.Concat(f.addresses, more.addresses)
	return f
}

func (v *View) service(name, namespace string) *services.Service {
	for i := range v.Services {
		if s := &v.Services[i]; s.Name == name && s.Namespace == namespace {
			return s
		}
	}
	return nil
}

// lookupPods looks up the names ADDRESS.NAMESPACE below pod, for existing pods, or, if not all pods are known, for all
// addresses (CoreDNS with "pods insecure", as kubeadm configures it).
func (v *View) lookupPods(rest []string) *records {
	if len(rest) == 0 || len(rest) == 1 && v.hasNamespace(rest[0]) {
		return &records{}
	}
	for i := range v.Pods {
		p := &v.Pods[i]
		for _, a := range p.Addresses {
			if len(rest) == 2 && p.Namespace == rest[1] && dashed(a) == rest[0] {
				return &records{addresses: []netip.Addr{a}}
			}
		}
	}
	if a, ok := parseDashed(rest[0]); ok && len(rest) == 2 && v.OtherNodes {
		return &records{addresses: []netip.Addr{a}}
	}
	return nil
}

// parseDashed parses a label of dashed.
func parseDashed(label string) (netip.Addr, bool) {
	for _, separator := range []string{".", ":"} {
		if a, err := netip.ParseAddr(strings.ReplaceAll(label, "-", separator)); err == nil {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// dashed formats an address as a label.
func dashed(a netip.Addr) string {
	return strings.NewReplacer(".", "-", ":", "-").Replace(a.String())
}
