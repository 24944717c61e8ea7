package resource

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// Endpoint is a pod behind a Service, with its published record.
type Endpoint struct {
	Pod      store.Pod
	Endpoint *pod.Endpoint
}

// EndpointsOf returns the pods that a Service selects.
func EndpointsOf(dirs store.Dirs, o *pod.Object) ([]Endpoint, error) {
	s := o.Service
	if s == nil || len(s.Selector) == 0 {
		return nil, nil
	}
	pods, err := dirs.Pods()
	if err != nil {
		return nil, err
	}
	var all []Endpoint
	for _, p := range pods {
		is, err := p.Endpoint()
		if err != nil || is.InCluster != o.IsFromCluster() || p.Namespace != o.Namespace || !p.Alive() || !is.Ready && !s.PublishNotReady {
			continue // it has no published record: it is ending, or has no network
		}
		chosen := true
		for k, v := range s.Selector {
			had, ok := is.Labels[k]
			chosen = chosen && ok && had == v
		}
		if chosen {
			all = append(all, Endpoint{p, is})
		}
	}
	return all, nil
}

// FixedEndpoints returns the ready addresses that Endpoints and EndpointSlices give to a Service without a
// selector, or that a cluster gives to its Service.
func FixedEndpoints(dirs store.Dirs, o *pod.Object) (list []pod.ServiceEndpoint, err error) {
	if o.IsFromCluster() && o.Endpoints != nil {
		return o.Endpoints.List, nil
	}
	if o.Service == nil || len(o.Service.Selector) > 0 {
		return nil, nil
	}
	for _, kind := range []pod.ObjectKind{pod.KindEndpoints, pod.KindEndpointSlice} {
		objects, err := dirs.Objects(kind, o.Namespace)
		if err != nil {
			return nil, err
		}
		for _, e := range objects {
			for _, endpoint := range e.Endpoints.List {
				if e.Endpoints.Service == o.Name && (!endpoint.NotReady || o.Service.PublishNotReady) {
					list = append(list, endpoint)
				}
			}
		}
	}
	return list, nil
}

// TargetOf returns the number of a Service's port in a pod; 0 if the pod has no such port.
func (e Endpoint) TargetOf(p pod.ServicePort) int {
	if p.TargetName == "" {
		return int(p.TargetPort)
	}
	for _, named := range e.Endpoint.Ports {
		if named.Name == p.TargetName && named.Protocol == p.Protocol {
			return named.Number
		}
	}
	return 0
}

// FindEndpoints returns the Endpoints that the user has named: the stored ones, else the computed ones of the Service.
func FindEndpoints(dirs store.Dirs, namespace, name string) (*pod.Object, error) {
	o, err := FindObject(dirs, pod.KindEndpoints, namespace, name)
	if err == nil {
		return o, nil
	}
	service, serr := FindObject(dirs, pod.KindService, namespace, name)
	if serr != nil {
		return nil, err
	}
	return computedEndpoints(dirs, service)
}

// ListEndpoints returns the stored Endpoints of a namespace, or of all for "", and the computed ones of the other
// Services.
func ListEndpoints(dirs store.Dirs, namespace string) ([]*pod.Object, error) {
	list, err := ListObjects(dirs, pod.KindEndpoints, namespace)
	services, serr := ListObjects(dirs, pod.KindService, namespace)
	errs := []error{err, serr}
	for _, s := range services {
		if slices.ContainsFunc(list, func(o *pod.Object) bool { return o.Namespace == s.Namespace && o.Name == s.Name }) {
			continue
		}
		o, err := computedEndpoints(dirs, s)
		if errs = append(errs, err); o != nil {
			list = append(list, o)
		}
	}
	sortObjects(list)
	return list, errors.Join(errs...)
}

// computedEndpoints returns the ready addresses behind a Service as an Endpoints object, as the controller of a cluster
// makes one.
func computedEndpoints(dirs store.Dirs, o *pod.Object) (*pod.Object, error) {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: o.Labels}}
	fixed, err := FixedEndpoints(dirs, o)
	if err != nil {
		return nil, err
	}
	for _, f := range fixed {
		var ports []corev1.EndpointPort
		for _, p := range f.Ports {
			ports = append(ports, corev1.EndpointPort{Name: p.Name, Port: p.Port, Protocol: corev1.Protocol(p.Protocol)})
		}
		addSubset(e, corev1.EndpointAddress{IP: f.Address, Hostname: f.Hostname}, ports)
	}
	if !o.IsFromCluster() { // the cluster decides which of the selected pods count
		pods, err := EndpointsOf(dirs, o)
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			addPod(e, o.Service, p)
		}
	}
	out := conversion.FromKubernetes(e)
	out.CreatedAt = o.CreatedAt
	return out, nil
}

// addPod adds the first address of a pod, of the family of the pod's network.
func addPod(e *corev1.Endpoints, s *pod.Service, p Endpoint) {
	if len(p.Endpoint.Addresses) == 0 {
		return
	}
	var ports []corev1.EndpointPort
	for _, port := range s.Ports {
		if number := p.TargetOf(port); number != 0 {
			ports = append(ports, corev1.EndpointPort{Name: port.Name, Port: int32(number), Protocol: corev1.Protocol(port.Protocol)})
		}
	}
	address := corev1.EndpointAddress{
		IP: p.Endpoint.Addresses[0], NodeName: new(NodeName()),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Pod.Namespace, Name: p.Pod.Name},
	}
	addSubset(e, address, ports)
}

// addSubset adds an address to the subset with its ports.
func addSubset(e *corev1.Endpoints, address corev1.EndpointAddress, ports []corev1.EndpointPort) {
	for i := range e.Subsets {
		if slices.Equal(e.Subsets[i].Ports, ports) {
			e.Subsets[i].Addresses = append(e.Subsets[i].Addresses, address)
			return
		}
	}
	e.Subsets = append(e.Subsets, corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{address}, Ports: ports})
}
