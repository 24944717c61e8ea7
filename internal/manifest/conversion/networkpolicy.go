package conversion

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/pod"
)

// policyFromKubernetes converts a policy with its defaults. Rules of a direction that is not among its types
// have no effect, as in Kubernetes.
func policyFromKubernetes(s *networkingv1.NetworkPolicySpec) *pod.NetworkPolicy {
	out := &pod.NetworkPolicy{Pods: *selectorFromKubernetes(&s.PodSelector)}
	if slices.Contains(s.PolicyTypes, networkingv1.PolicyTypeIngress) {
		out.Ingress = &pod.NetworkPolicyTraffic{}
		for _, rule := range s.Ingress {
			out.Ingress.Rules = append(out.Ingress.Rules, policyRule(rule.From, rule.Ports))
		}
	}
	if slices.Contains(s.PolicyTypes, networkingv1.PolicyTypeEgress) {
		out.Egress = &pod.NetworkPolicyTraffic{}
		for _, rule := range s.Egress {
			out.Egress.Rules = append(out.Egress.Rules, policyRule(rule.To, rule.Ports))
		}
	}
	return out
}

func policyRule(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort) (out pod.NetworkPolicyRule) {
	for _, p := range peers {
		peer := pod.NetworkPolicyPeer{}
		if p.PodSelector != nil {
			peer.Pods = selectorFromKubernetes(p.PodSelector)
		}
		if p.NamespaceSelector != nil {
			peer.Namespaces = selectorFromKubernetes(p.NamespaceSelector)
		}
		if p.IPBlock != nil {
			peer.CIDR, peer.Except = p.IPBlock.CIDR, p.IPBlock.Except
		}
		out.Peers = append(out.Peers, peer)
	}
	for _, p := range ports {
		port := pod.NetworkPolicyPort{Protocol: string(*p.Protocol)}
		switch {
		case p.Port == nil:
			port.Last = 65535
		case p.Port.Type == intstr.String:
			port.Name = p.Port.StrVal
		default:
			port.First, port.Last = p.Port.IntVal, ptr.Deref(p.EndPort, p.Port.IntVal)
		}
		out.Ports = append(out.Ports, port)
	}
	return out
}
