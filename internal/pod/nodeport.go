package pod

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Range of node ports that Services may open (kube-apiserver: --service-node-port-range).
const (
	FirstNodePort = 30000
	LastNodePort  = 32767
)

// Clashes reports whether a Service names an address or a node port that another one has.
func (s *Service) Clashes(other *Service) bool {
	return !s.Headless() && slices.ContainsFunc(s.ClusterIPs, func(ip string) bool { return slices.Contains(other.ClusterIPs, ip) }) ||
		slices.ContainsFunc(s.Ports, func(p ServicePort) bool {
			return p.NodePort != 0 && slices.ContainsFunc(other.Ports, func(o ServicePort) bool { return o.NodePort == p.NodePort && o.Protocol == p.Protocol })
		})
}

// AssignNodePorts gives a node port to every port of a NodePort or LoadBalancer Service that sets none.
// It returns an error for a port that is set and taken by another Service. others are all Services; free
// returns an error for a port that another program uses.
func (o *Object) AssignNodePorts(others []*Object, free func(protocol string, port int) error) error {
	if o.Service == nil || !o.Service.Type.OpensPorts() {
		return nil
	}
	type key struct {
		protocol string
		port     int32
	}
	taken := map[key]string{}
	note := func(of *Object, name string) {
		for _, p := range of.Service.Ports {
			if p.NodePort != 0 {
				taken[key{p.Protocol, p.NodePort}] = name
			}
		}
	}
	for _, other := range others {
		if other.Service != nil && (other.Namespace != o.Namespace || other.Name != o.Name) {
			note(other, fmt.Sprintf("Service %s in namespace %s", other.Name, other.Namespace))
		}
	}
	for i, p := range o.Service.Ports {
		if other := taken[key{p.Protocol, p.NodePort}]; p.NodePort != 0 && other != "" {
			return fmt.Errorf("spec.ports[%d].nodePort: Invalid value: %d: provided port is already allocated: %s uses it", i, p.NodePort, other)
		}
	}
	note(o, "the Service itself")
	for i := range o.Service.Ports {
		p := &o.Service.Ports[i]
		if p.NodePort != 0 {
			continue
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%s/%s/%d/%s", o.Namespace, o.Name, p.Port, p.Protocol)
		const all = LastNodePort - FirstNodePort + 1
		for n := range uint32(all) {
			candidate := key{p.Protocol, FirstNodePort + int32((h.Sum32()+n)%all)}
			if taken[candidate] == "" && free(p.Protocol, int(candidate.port)) == nil {
				p.NodePort, taken[candidate] = candidate.port, o.Name
				break
			}
		}
		if p.NodePort == 0 {
			return fmt.Errorf("spec.ports[%d].nodePort: all of %d to %d are taken", i, FirstNodePort, LastNodePort)
		}
	}
	return nil
}
