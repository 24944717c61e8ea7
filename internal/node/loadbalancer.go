package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// assignAddresses gives the node's address to Services of type LoadBalancer that have none. Every node leads connections to that
// address to the Services' pods, so it does not matter which node does it. A Service with a class belongs to another load
// balancer.
func (s *serviceWatcher) assignAddresses(ctx context.Context, all []Service) error {
	if !s.LoadBalancer {
		return nil
	}
	taken := s.takenPorts(all)
	for _, service := range all {
		if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.LoadBalancerClass != nil || len(service.Status.LoadBalancer.Ingress) > 0 || service.DeletionTimestamp != nil {
			continue
		}
		if slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return taken[balancedPort{p.Protocol, p.Port}] }) {
			continue // another node may have the port, or a port may become free
		}
		for _, p := range service.Spec.Ports {
			taken[balancedPort{p.Protocol, p.Port}] = true
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": service.UID, "resourceVersion": service.ResourceVersion}, // what another node has assigned meanwhile stays
			"status":   map[string]any{"loadBalancer": corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: s.Node.Addresses[0]}}}},
		})
		if err != nil {
			return fmt.Errorf("encode the status of Service %s: %w", service.Name, err)
		}
		path := "/api/v1/namespaces/" + service.Namespace + "/services/" + service.Name + "/status"
		request, cancel := context.WithTimeout(ctx, requestTime)
		err = s.Client.Patch(request, path, types.MergePatchType, body, nil)
		cancel()
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("give Service %s an address: %w", service.Name, err)
		}
	}
	return nil
}

// A balancedPort is a port at the node's address.
type balancedPort struct {
	protocol corev1.Protocol
	number   int32
}

// takenPorts returns the ports at which the node's address leads elsewhere: to the agent, the API server or a Service.
func (s *serviceWatcher) takenPorts(all []Service) map[balancedPort]bool {
	at, taken := s.Node.Addresses[0], map[balancedPort]bool{{corev1.ProtocolTCP, s.Node.Port}: true}
	for _, o := range all {
		if slices.ContainsFunc(o.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP == at }) {
			for _, p := range o.Spec.Ports {
				taken[balancedPort{p.Protocol, p.Port}] = true
			}
		}
		if o.Namespace != metav1.NamespaceDefault || o.Name != "kubernetes" || o.Endpoints == nil {
			continue
		}
		for _, e := range o.Endpoints.List {
			for _, p := range e.Ports {
				if e.Address == at {
					taken[balancedPort{corev1.Protocol(p.Protocol), p.Port}] = true
				}
			}
		}
	}
	return taken
}
