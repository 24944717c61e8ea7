package describe

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// networkPolicy writes a NetworkPolicy's page (describeNetworkPolicy of kubectl).
func (p *page) networkPolicy(n *networkingv1.NetworkPolicy) {
	p.row(0, "Name:", n.Name)
	p.row(0, "Namespace:", n.Namespace)
	p.row(0, "Created on:", n.CreationTimestamp.String())
	p.labelsAndAnnotations(n)
	p.row(0, "Spec:")
	selector := "<none> (Allowing the specific traffic to all pods in this namespace)"
	if s := &n.Spec.PodSelector; len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		selector = metav1.FormatLabelSelector(s)
	}
	p.row(1, "PodSelector:     "+selector)
	var ingress, egress []policyRule
	for _, r := range n.Spec.Ingress {
		ingress = append(ingress, policyRule{r.Ports, r.From})
	}
	for _, r := range n.Spec.Egress {
		egress = append(egress, policyRule{r.Ports, r.To})
	}
	p.policyRules(ingress, slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeIngress), "ingress", "From", "source")
	p.policyRules(egress, slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeEgress), "egress", "To", "destination")
	var types []string
	for _, t := range n.Spec.PolicyTypes {
		types = append(types, string(t))
	}
	p.row(1, "Policy Types: "+strings.Join(types, ", "))
}

// policyRule is a rule of either direction.
type policyRule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

func (p *page) policyRules(rules []policyRule, affected bool, kind, word, restricted string) {
	if !affected {
		p.row(1, "Not affecting "+kind+" traffic")
		return
	}
	p.row(1, "Allowing "+kind+" traffic:")
	if len(rules) == 0 {
		p.row(2, "<none> (Selected pods are isolated for "+kind+" connectivity)")
	}
	for i, r := range rules {
		if i > 0 {
			p.row(2, "----------")
		}
		for _, port := range r.ports {
			p.row(2, "To Port: "+policyPort(port))
		}
		if len(r.ports) == 0 {
			p.row(2, "To Port: <any> (traffic allowed to all ports)")
		}
		for _, peer := range r.peers {
			p.row(2, word+":")
			p.policyPeer(peer)
		}
		if len(r.peers) == 0 {
			p.row(2, fmt.Sprintf("%s: <any> (traffic not restricted by %s)", word, restricted))
		}
	}
}

// policyPort returns a port, or a range of ports, of a protocol.
func policyPort(port networkingv1.NetworkPolicyPort) string {
	text := "<any>"
	if port.Port != nil {
		text = port.Port.String()
	}
	if port.EndPort != nil {
		text += fmt.Sprintf("-%d", *port.EndPort)
	}
	return text + "/" + string(*port.Protocol)
}

func (p *page) policyPeer(peer networkingv1.NetworkPolicyPeer) {
	if peer.NamespaceSelector != nil {
		p.row(3, "NamespaceSelector: "+metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
	if peer.PodSelector != nil {
		p.row(3, "PodSelector: "+metav1.FormatLabelSelector(peer.PodSelector))
	}
	if b := peer.IPBlock; b != nil {
		p.row(3, "IPBlock:")
		p.row(4, "CIDR: "+b.CIDR)
		p.row(4, "Except: "+strings.Join(b.Except, ", "))
	}
}
