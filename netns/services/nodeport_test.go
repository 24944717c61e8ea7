package services

import (
	"reflect"
	"testing"
	"time"
)

// Ports of the host lead to ready pods of their Services, by number or name.
func TestNodePorts(t *testing.T) {
	web := map[string]string{"app": "web"}
	d := Catalog{
		Services: []Service{
			{Namespace: "default", Name: "web", Selector: web, Ports: []Port{{Protocol: "TCP", Port: 80, Target: 8080, NodePort: 30080}, {Protocol: "TCP", Port: 81, Target: 81}}},
			{Namespace: "default", Name: "dns", Selector: web, Ports: []Port{{Protocol: "UDP", Port: 53, TargetName: "dns", NodePort: 30053}, {Protocol: "TCP", Port: 53, TargetName: "dns", NodePort: 30053}}},
			{Namespace: "default", Name: "late", Selector: web, PublishNotReady: true, Affinity: time.Hour, Ports: []Port{{Protocol: "TCP", Port: 1, Target: 1, NodePort: 30001}}},
			{Namespace: "default", Name: "manual", Ports: []Port{{Protocol: "TCP", Port: 2, Target: 2, NodePort: 30002}}},
			{Namespace: "default", Name: "fixed", Ports: []Port{{Name: "http", Protocol: "TCP", Port: 4, Target: 4, NodePort: 30004}},
				Fixed: []Pod{{Addresses: addresses("10.88.0.4"), Ready: true, Fixed: true, Ports: []NamedPort{{Name: "http", Protocol: "TCP", Port: 44}}}}},
			{Namespace: "other", Name: "web", Selector: web, Ports: []Port{{Protocol: "TCP", Port: 3, Target: 3, NodePort: 30003}}},
		},
		Pods: []Pod{
			{Namespace: "default", Name: "a", Labels: web, Ready: true, Ports: []NamedPort{{Name: "dns", Protocol: "UDP", Port: 5353}}},
			{Namespace: "default", Name: "b", Labels: web},
			{Namespace: "default", Name: "c", Ready: true, Addresses: addresses("10.88.0.4", "fd88::4")},
		},
	}
	for name, want := range map[string][]NodePort{
		"a": {{"TCP", 30001, 1, true}, {"UDP", 30053, 5353, false}, {"TCP", 30080, 8080, false}},
		"b": {{"TCP", 30001, 1, true}}, "c": {{"TCP", 30004, 44, false}}, "d": nil,
	} {
		if got := d.NodePorts("default", name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
