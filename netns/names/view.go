// Package names answers what containers ask their nameserver: names of pods and
// Services from what is known here, everything else as the host's resolvers do, which
// are asked from the host's network.
package names

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podrun/podrun/netns/services"
)

// The zones that are ours. What they do not hold does not exist, and is asked of nobody.
const (
	cluster  = "cluster.local"
	internal = "podrun.internal"
)

// View is what is known, as one pod sees it.
type View struct {
	services.Directory
	Namespace string         // the pod's: a name without one is of it
	Host      []netip.Addr   // by which the host's loopback is reached; none: it is not
	Ranges    []netip.Prefix // of pods' and Services' addresses: none of them is known elsewhere
}

// found is what there is of a name. The zero value says that the name exists and has
// nothing.
type found struct {
	addresses []netip.Addr
	alias     string // stands for another name
	servers   []server
	names     []string // of an address
}

// server is where a port of a Service is served.
type server struct {
	name string
	port uint16
}

// find looks a name up, given in lower case and without the dot at its end. ours says
// that nobody else is to be asked; nil, that the name does not exist.
func (v *View) find(name string) (f *found, ours bool) {
	labels := strings.Split(name, ".")
	if rest, ok := below(labels, cluster); ok {
		return v.inCluster(rest), true
	}
	if rest, ok := below(labels, internal); ok {
		return v.inPodrun(rest), true
	}
	if a, ok := reversed(labels); ok {
		return v.ofAddress(a)
	}
	f = v.short(labels)
	return f, f != nil
}

// below gives what stands before a zone's name.
func below(labels []string, zone string) ([]string, bool) {
	end := strings.Split(zone, ".")
	n := len(labels) - len(end)
	if n < 0 || !slices.Equal(labels[n:], end) {
		return nil, false
	}
	return labels[:n], true
}

func (v *View) inPodrun(rest []string) *found {
	switch {
	case len(rest) == 0:
		return &found{}
	case len(rest) == 1 && rest[0] == "host" && len(v.Host) > 0:
		return &found{addresses: v.Host}
	}
	return nil
}

func (v *View) inCluster(rest []string) *found {
	if len(rest) == 0 {
		return &found{}
	}
	last := len(rest) - 1
	switch rest[last] {
	case "svc":
		return v.inServices(rest[:last])
	case "pod":
		return v.inPods(rest[:last])
	}
	return nil
}

// short are names without the cluster's domain: NAME, NAME.NAMESPACE,
// NAME.NAMESPACE.svc. They exist if they are known.
func (v *View) short(labels []string) *found {
	last := len(labels) - 1
	if labels[last] == "svc" && last >= 2 {
		return v.inServices(labels[:last])
	}
	if f := v.named(labels, v.Namespace); f != nil {
		return f
	}
	if last >= 1 {
		return v.named(labels[:last], labels[last])
	}
	return nil
}

// inServices are the names below svc.
func (v *View) inServices(rest []string) *found {
	if len(rest) == 0 {
		return &found{}
	}
	last := len(rest) - 1
	if f := v.named(rest[:last], rest[last]); last > 0 && f != nil {
		return f
	}
	if last == 0 && v.hasNamespace(rest[0]) {
		return &found{}
	}
	return nil
}

func (v *View) hasNamespace(name string) bool {
	return slices.ContainsFunc(v.Services, func(s services.Service) bool { return s.Namespace == name }) ||
		slices.ContainsFunc(v.Pods, func(p services.Pod) bool { return p.Namespace == name })
}

// named are the names within a namespace: of Services, of what is behind them, of pods.
func (v *View) named(labels []string, namespace string) *found {
	if len(labels) == 0 {
		return nil
	}
	last := len(labels) - 1
	if s := v.service(labels[last], namespace); s != nil {
		switch {
		case last == 0:
			return v.ofService(s, "", "")
		case last == 1 && !strings.HasPrefix(labels[0], "_"):
			if f := v.member(s, labels[0]); f != nil {
				return f
			}
		case last == 2 && strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_"):
			if f := v.ofService(s, labels[0][1:], labels[1][1:]); len(f.servers) > 0 {
				return &found{servers: f.servers}
			}
		}
	}
	return v.pod(labels, namespace)
}

// pod finds one by its name, or, where no Service has the name of its subdomain, by its
// hostname and subdomain.
func (v *View) pod(labels []string, namespace string) *found {
	name := strings.Join(labels, ".")
	f := (*found)(nil)
	for i := range v.Pods {
		p := &v.Pods[i]
		if p.Namespace != namespace {
			continue
		}
		if p.Name == name {
			return &found{addresses: p.Addresses}
		}
		if p.Subdomain != "" && p.Hostname+"."+p.Subdomain == name && v.service(p.Subdomain, namespace) == nil {
			f = join(f, &found{addresses: p.Addresses})
		}
	}
	return f
}

func join(f, more *found) *found {
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

// inPods are the names ADDRESS.NAMESPACE below pod, of pods there are
// (Kubernetes' DNS specification, 2.3).
func (v *View) inPods(rest []string) *found {
	if len(rest) == 0 || len(rest) == 1 && v.hasNamespace(rest[0]) {
		return &found{}
	}
	for i := range v.Pods {
		p := &v.Pods[i]
		for _, a := range p.Addresses {
			if len(rest) == 2 && p.Namespace == rest[1] && dashed(a) == rest[0] {
				return &found{addresses: []netip.Addr{a}}
			}
		}
	}
	return nil
}

// dashed spells an address as a label.
func dashed(a netip.Addr) string {
	return strings.NewReplacer(".", "-", ":", "-").Replace(a.String())
}
