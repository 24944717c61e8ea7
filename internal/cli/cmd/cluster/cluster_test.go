package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/node/controlplane"
)

func TestParsePort(t *testing.T) {
	for text, want := range map[string]controlplane.Port{
		"8080:30080":           {HostAddress: "127.0.0.1", Host: 8080, Node: 30080, Protocol: "TCP"},
		"30080:30080":          {HostAddress: "127.0.0.1", Host: 30080, Node: 30080, Protocol: "TCP"},
		"0.0.0.0:53:30053/udp": {HostAddress: "0.0.0.0", Host: 53, Node: 30053, Protocol: "UDP"},
		"[::1]:1:2":            {HostAddress: "::1", Host: 1, Node: 2, Protocol: "TCP"},
		"8080":                 {},
		"0:1":                  {},
		"1:65536":              {},
		"1:2/sctp":             {},
		"host:1:2":             {},
		"1:2:":                 {},
		"1-2:1-2":              {},
	} {
		got, err := parsePort(text)
		if (err == nil) != (want != controlplane.Port{}) || err == nil && got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestUnready(t *testing.T) {
	condition := func(status corev1.ConditionStatus) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: "it starts"}}}
	}
	taint := corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}}
	cordoned := corev1.Node{Status: condition(corev1.ConditionTrue), Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}}}}
	if got := unready(&cordoned); got != "" {
		t.Errorf("a cordoned node is not ready: %s", got)
	}
	for want, n := range map[string]corev1.Node{
		"":                         {Status: condition(corev1.ConditionTrue)},
		"it starts":                {Status: condition(corev1.ConditionFalse)},
		"it has no conditions yet": {},
		"it has the taint node.kubernetes.io/not-ready": {Status: condition(corev1.ConditionTrue), Spec: taint},
	} {
		if got := unready(&n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
