package pod

import (
	"errors"
	"strings"
	"testing"
)

func nodeService(name string, ports ...ServicePort) *Object {
	return &Object{Kind: KindService, Namespace: "default", Name: name, Service: &Service{Type: ServiceNodePort, Ports: ports}}
}

// TestGivePorts: unnamed node ports are free ones of the range; a named one belongs to one Service
// and protocol.
func TestGivePorts(t *testing.T) {
	free := func(string, int) error { return nil }
	tcp := func(port, node int32) ServicePort { return ServicePort{Protocol: "TCP", Port: port, NodePort: node} }
	udp := ServicePort{Protocol: "UDP", Port: 53, NodePort: 30080}
	others := []*Object{nodeService("other", tcp(80, 30080)), {Kind: KindConfigMap, Name: "map"}}

	a := nodeService("a", tcp(80, 0), tcp(81, 0), udp)
	if err := a.AssignNodePorts(others, free); err != nil {
		t.Fatal(err)
	}
	first, second := a.Service.Ports[0].NodePort, a.Service.Ports[1].NodePort
	for _, p := range []int32{first, second} {
		if p < FirstNodePort || p > LastNodePort || p == 30080 {
			t.Errorf("port %d was given", p)
		}
	}
	if first == second || a.Service.Ports[2].NodePort != 30080 {
		t.Errorf("ports %+v", a.Service.Ports)
	}
	again := nodeService("a", tcp(80, 0))
	if err := again.AssignNodePorts(others, free); err != nil || again.Service.Ports[0].NodePort != first {
		t.Errorf("another one next time: %+v, %v", again.Service.Ports, err)
	}
	busy := func(_ string, port int) error {
		if int32(port) == first {
			return errors.New("taken by a program")
		}
		return nil
	}
	moved := nodeService("a", tcp(80, 0))
	if err := moved.AssignNodePorts(others, busy); err != nil || moved.Service.Ports[0].NodePort == first || moved.Service.Ports[0].NodePort == 0 {
		t.Errorf("a port that a program has: %+v, %v", moved.Service.Ports, err)
	}
	if err := nodeService("b", tcp(80, 30080)).AssignNodePorts(others, free); err == nil || !strings.Contains(err.Error(), "Service other in namespace default uses it") {
		t.Errorf("another's port: %v", err)
	}
	if err := others[0].AssignNodePorts(others, free); err != nil {
		t.Errorf("its own port: %v", err)
	}
	none := nodeService("c", tcp(80, 0))
	if err := none.AssignNodePorts(nil, func(string, int) error { return errors.New("taken") }); err == nil {
		t.Error("a port, and yet all are taken")
	}
	plain := nodeService("d", tcp(80, 0))
	plain.Service.Type = ServiceClusterIP
	if err := plain.AssignNodePorts(nil, free); err != nil || plain.Service.Ports[0].NodePort != 0 {
		t.Errorf("a ClusterIP Service: %+v, %v", plain.Service.Ports, err)
	}
}
