package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// A policy concerns the traffic that policyTypes lists, by default ingress, and egress if it has rules for it. A
// rule's protocol is TCP by default; without a port it allows all of the protocol.
func TestNetworkPolicy(t *testing.T) {
	rule := []pod.NetworkPolicyRule{{}}
	for spec, want := range map[string]pod.NetworkPolicy{
		`{podSelector: {}}`:                                               {Ingress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {}, ingress: [{}]}`:                                {Ingress: &pod.NetworkPolicyTraffic{Rules: rule}},
		`{podSelector: {}, egress: []}`:                                   {Ingress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {}, egress: [{}]}`:                                 {Ingress: &pod.NetworkPolicyTraffic{}, Egress: &pod.NetworkPolicyTraffic{Rules: rule}},
		`{podSelector: {}, policyTypes: [Egress]}`:                        {Egress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {}, policyTypes: [Egress], ingress: [{}]}`:         {Egress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {}, policyTypes: [Ingress], egress: [{}]}`:         {Ingress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {matchLabels: {a: b}}, policyTypes: [Ingress]}`:    {Pods: pod.Selector{Requirements: []pod.Requirement{{Key: "a", Operator: "In", Values: []string{"b"}}}}, Ingress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {matchExpressions: [{key: a, operator: Exists}]}}`: {Pods: pod.Selector{Requirements: []pod.Requirement{{Key: "a", Operator: "Exists"}}}, Ingress: &pod.NetworkPolicyTraffic{}},
		`{podSelector: {}, ingress: [{ports: [{}, {port: 80}, {port: 80, endPort: 90, protocol: UDP}, {port: http}], from: [{podSelector: {}}, {namespaceSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}`: {
			Ingress: &pod.NetworkPolicyTraffic{Rules: []pod.NetworkPolicyRule{{
				Peers: []pod.NetworkPolicyPeer{{Pods: &pod.Selector{}}, {Namespaces: &pod.Selector{}}, {CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16"}}},
				Ports: []pod.NetworkPolicyPort{{Protocol: "TCP", Last: 65535}, {Protocol: "TCP", First: 80, Last: 80}, {Protocol: "UDP", First: 80, Last: 90}, {Protocol: "TCP", Name: "http"}},
			}}}},
	} {
		objects, err := manifest.Load("policy.yaml", []byte("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: a}\nspec: "+spec+"\n"))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if diff := cmp.Diff(&want, objects[0].Stored.NetworkPolicy); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}
