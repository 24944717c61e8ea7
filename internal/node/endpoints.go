package node

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/pod"
)

// labelProxyName is on Services whose connections another program directs (kubernetes: pkg/proxy/apis/well_known_labels.go).
const labelProxyName = "service.kubernetes.io/service-proxy-name"

// endpointsOf returns the endpoints of a Service to which a connection from a node may lead: the ready endpoints or, if
// there are none, endpoints that serve while they are terminating (kube-proxy: pkg/proxy/topology.go,
// CategorizeEndpoints). The endpoints of a Service without an address are for its DNS names: only ready ones. Node
// ports need no separate choice: a node's ports lead to its own pods.
// readyPods are the node's pods that are ready endpoints. A terminating one is not, even if its address is published.
func endpointsOf(s *corev1.Service, all []*discoveryv1.EndpointSlice, node string) (endpoints *pod.Endpoints, readyPods []string) {
	hasAddress := s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
	onlyLocal := hasAddress && ptr.Deref(s.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal
	var ready, terminating []pod.ServiceEndpoint
	for _, slice := range heeded(s, all, hasAddress) {
		ports := portsOf(slice)
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			on := ptr.Deref(e.NodeName, "")
			if len(e.Addresses) == 0 || onlyLocal && on != node {
				continue
			}
			endpoint := pod.ServiceEndpoint{Address: e.Addresses[0], Hostname: ptr.Deref(e.Hostname, ""), Remote: on != "" && on != node, Ports: ports}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && on == node {
				endpoint.Pod = e.TargetRef.Name
			}
			isTerminating := ptr.Deref(e.Conditions.Terminating, false)
			switch {
			case ptr.Deref(e.Conditions.Ready, true):
				ready = append(ready, endpoint)
				if endpoint.Pod != "" && !isTerminating {
					readyPods = append(readyPods, endpoint.Pod)
				}
			case hasAddress && ptr.Deref(e.Conditions.Serving, true) && isTerminating:
				terminating = append(terminating, endpoint)
			}
		}
	}
	if len(ready) == 0 {
		ready = terminating
	}
	return &pod.Endpoints{Service: s.Name, List: ready}, readyPods
}

// heeded returns the EndpointSlices of a Service that a node heeds, sorted by their names. If the Service has an address, the node
// directs connections, and heeds what kube-proxy does (cmd/kube-proxy/app, the selectors of the informers).
func heeded(s *corev1.Service, all []*discoveryv1.EndpointSlice, hasAddress bool) []*discoveryv1.EndpointSlice {
	if _, ofAnother := s.Labels[labelProxyName]; hasAddress && ofAnother {
		return nil
	}
	all = slices.DeleteFunc(slices.Clone(all), func(e *discoveryv1.EndpointSlice) bool {
		_, forNames := e.Labels[corev1.IsHeadlessService]
		return e.AddressType == discoveryv1.AddressTypeFQDN || hasAddress && forNames
	})
	slices.SortFunc(all, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// portsOf returns the ports of the endpoints of an EndpointSlice.
func portsOf(s *discoveryv1.EndpointSlice) (ports []pod.EndpointPort) {
	for _, p := range s.Ports {
		ports = append(ports, pod.EndpointPort{Name: ptr.Deref(p.Name, ""), Protocol: string(ptr.Deref(p.Protocol, corev1.ProtocolTCP)), Port: ptr.Deref(p.Port, 0)})
	}
	return ports
}
