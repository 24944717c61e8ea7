package compose

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/podrun/podrun/internal/manifest/compose/api"
)

// labelNetwork begins the label that every pod of a network has.
const labelNetwork = "compose-network/"

// networkLabel returns the label of a network. Its name is the same in all projects that share it.
func networkLabel(n types.NetworkConfig) string { return labelNetwork + api.Label(n.Name) }

// share reports whether two services have a network in common.
func share(a, b types.ServiceConfig) bool {
	for name := range a.Networks {
		if _, ok := b.Networks[name]; ok {
			return true
		}
	}
	return false
}

// isolated reports whether the networks separate services: only then there are policies.
func (c *converter) isolated() bool {
	names := c.project.ServiceNames()
	for i, a := range names {
		for _, b := range names[:i] {
			if a, b := c.project.Services[a], c.project.Services[b]; len(a.Networks)*len(b.Networks) > 0 && !share(a, b) {
				return true
			}
		}
	}
	return false
}

// internal reports whether a service is on internal networks only, from which nothing outside is reached.
func (c *converter) internal(s types.ServiceConfig) bool {
	for name := range s.Networks {
		if !c.project.Networks[name].Internal {
			return false
		}
	}
	return len(s.Networks) > 0
}

// checkNetworks refuses drivers and names that a network cannot have, and decides whether the project has policies.
func (c *converter) checkNetworks() {
	labels := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.project.Networks)) {
		n := c.project.Networks[name]
		if !slices.Contains([]string{"", "bridge"}, n.Driver) {
			c.refuse([]string{"networks", name, "driver"}, "is refused: podrun has one network; network_mode: host gives a pod the host's network")
		}
		if other, taken := labels[networkLabel(n)]; taken {
			c.refuse([]string{"networks", name}, "is refused: %s and %s (line %d) both become %s: rename one", name, other, c.files.find("networks", other).line, api.Label(n.Name))
		}
		labels[networkLabel(n)] = name
	}
	c.separate = c.isolated()
}

// networkLabels are the labels of a service's pods that policies select: policies of this project, or of another project
// on the same external network.
func (c *converter) networkLabels(s types.ServiceConfig) object {
	labels := object{}
	for name := range s.Networks {
		if n := c.project.Networks[name]; c.separate || n.Internal || bool(n.External) {
			labels[networkLabel(n)] = "true"
		}
	}
	return labels
}

// policy isolates a service as docker's networks do. Pods of its networks reach it, in all namespaces; everyone reaches a
// published port. On internal networks it reaches no one else.
func (c *converter) policy(s types.ServiceConfig) {
	internal := c.internal(s)
	if len(s.Networks) == 0 || !c.separate && !internal {
		return
	}
	var peers []object
	for _, name := range slices.Sorted(maps.Keys(s.Networks)) {
		peers = append(peers, object{
			"namespaceSelector": object{}, "podSelector": object{"matchLabels": object{networkLabel(c.project.Networks[name]): "true"}},
		})
	}
	spec := object{"podSelector": object{"matchLabels": object{api.LabelProject: labelValue(c.project.Name), api.LabelService: labelValue(s.Name)}}}
	var types []string
	if c.separate {
		types = append(types, "Ingress")
		ingress := []object{{"from": peers}}
		if ports := publishedPorts(s); len(ports) > 0 {
			ingress = append(ingress, object{"ports": ports})
		}
		spec["ingress"] = ingress
	}
	if internal {
		types = append(types, "Egress")
		spec["egress"] = []object{{"to": peers}}
	}
	spec["policyTypes"] = types
	c.add("networking.k8s.io/v1", "NetworkPolicy", api.Label(s.Name), nil, object{"spec": spec})
}

// publishedPorts are the ports of a service that other machines reach by a port of the host.
func publishedPorts(s types.ServiceConfig) (ports []object) {
	for _, p := range s.Ports {
		if a, err := netip.ParseAddr(p.HostIP); err == nil && a.IsLoopback() {
			continue
		}
		ports = append(ports, object{"port": p.Target, "protocol": strings.ToUpper(p.Protocol)})
	}
	return ports
}
