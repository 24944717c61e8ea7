package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/pod"
)

// TestLoadBalancer: a Service of type LoadBalancer without an address gets the node's, unless it has a class, or the agent is
// not asked to.
func TestLoadBalancer(t *testing.T) {
	for name, tt := range map[string]struct {
		enabled bool
		change  func(*corev1.Service)
		want    string
	}{
		"assigned":     {true, func(*corev1.Service) {}, "192.0.2.1"},
		"not asked":    {false, func(*corev1.Service) {}, ""},
		"another kind": {true, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, ""},
		"a class":      {true, func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/lb") }, ""},
		"it has one": {true, func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
		}, "192.0.2.9"},
		"the agent's port": {true, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 10250}}
		}, ""},
		"the API server's port": {true, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 6443}}
		}, ""},
		"another Service's port": {true, func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			const path = "/api/v1/namespaces/default/services/web"
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: uid1}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
			tt.change(s)
			b.Put(t, path, s)
			stored := &corev1.Service{}
			client := b.Client(t)
			if err := client.Get(t.Context(), path, stored); err != nil {
				t.Fatal(err)
			}
			w := &serviceWatcher{Agent: &Agent{Client: client, Node: &Registration{Name: "attic", Addresses: []string{"192.0.2.1"}, Port: 10250}, LoadBalancer: tt.enabled}}
			api := Service{Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"}},
				Endpoints: &pod.Endpoints{List: []pod.ServiceEndpoint{{Address: "192.0.2.1", Ports: []pod.EndpointPort{{Protocol: "TCP", Port: 6443}}}}}}
			other := Service{Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}}},
				Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}}}}
			for range 2 { // again with what the watch has not replaced yet
				if err := w.assignAddresses(t.Context(), []Service{api, other, {Service: stored}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := client.Get(t.Context(), path, stored); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, i := range stored.Status.LoadBalancer.Ingress {
				got += i.IP
			}
			if got != tt.want {
				t.Errorf("the Service has the address %q, want %q", got, tt.want)
			}
		})
	}
}
