package node

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// assignAddresses gives the node's address to Services of type LoadBalancer that have none. Every node leads connections to that
// address to the Services' pods, so it does not matter which node does it. A Service with a class belongs to another load
// balancer.
func (s *serviceWatcher) assignAddresses(ctx context.Context, all []Service) error {
	if !s.LoadBalancer {
		return nil
	}
	for _, service := range all {
		if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.LoadBalancerClass != nil || len(service.Status.LoadBalancer.Ingress) > 0 || service.DeletionTimestamp != nil {
			continue
		}
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": service.UID, "resourceVersion": service.ResourceVersion}, // what another node has assigned meanwhile stays
			"status":   map[string]any{"loadBalancer": corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: s.Node.Addresses[0]}}}},
		})
		if err != nil {
			return fmt.Errorf("encode the status of Service %s: %w", service.Name, err)
		}
		path := "/api/v1/namespaces/" + service.Namespace + "/services/" + service.Name + "/status"
		if err := s.Client.Patch(ctx, path, types.MergePatchType, body, nil); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("give Service %s an address: %w", service.Name, err)
		}
	}
	return nil
}
