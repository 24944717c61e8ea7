package conversion

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/pod"
)

// endpointsFromKubernetes returns the addresses of an Endpoints object, whose Service has its name.
func endpointsFromKubernetes(o *corev1.Endpoints) *pod.Endpoints {
	out := &pod.Endpoints{Service: o.Name}
	for _, s := range o.Subsets {
		var ports []pod.EndpointPort
		for _, p := range s.Ports {
			ports = append(ports, pod.EndpointPort{Name: p.Name, Protocol: string(p.Protocol), Port: p.Port})
		}
		add := func(list []corev1.EndpointAddress, notReady bool) {
			for _, a := range list {
				out.List = append(out.List, pod.ServiceEndpoint{Address: a.IP, Hostname: a.Hostname, NotReady: notReady, Ports: ports})
			}
		}
		add(s.Addresses, false)
		add(s.NotReadyAddresses, true)
	}
	return out
}

// endpointSliceFromKubernetes returns the addresses of an EndpointSlice. Of the addresses of one endpoint,
// which are interchangeable, it takes the first, as kube-proxy does.
func endpointSliceFromKubernetes(o *discoveryv1.EndpointSlice) *pod.Endpoints {
	out := &pod.Endpoints{Service: o.Labels[discoveryv1.LabelServiceName]}
	var ports []pod.EndpointPort
	for _, p := range o.Ports {
		ports = append(ports, pod.EndpointPort{Name: ptr.Deref(p.Name, ""), Protocol: string(ptr.Deref(p.Protocol, corev1.ProtocolTCP)), Port: ptr.Deref(p.Port, 0)})
	}
	for _, e := range o.Endpoints {
		if len(e.Addresses) > 0 {
			out.List = append(out.List, pod.ServiceEndpoint{Address: e.Addresses[0], Hostname: ptr.Deref(e.Hostname, ""), NotReady: !ptr.Deref(e.Conditions.Ready, true), Ports: ports})
		}
	}
	return out
}
