package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/validation"
)

// testNode has two processors, 1 GiB of memory and room for three pods.
func testNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "attic", Labels: map[string]string{"place": "attic"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"), corev1.ResourcePods: resource.MustParse("3"),
		}},
	}
}

// testPod requests half a processor.
func testPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// TestAdmit compares with the reasons and messages of the kubelet.
func TestAdmit(t *testing.T) {
	request := func(name corev1.ResourceName, amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(amount) }
	}
	port := func(ip string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: ip}}
		}
	}
	sysctl := func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
	}
	withCard := testNode()
	withCard.Status.Allocatable["example.com/card"] = resource.MustParse("1")
	tainted := testNode()
	tainted.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}, {Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	for name, tc := range map[string]struct {
		pod             *corev1.Pod
		node            *corev1.Node
		others          []*corev1.Pod
		unsafe          validation.UnsafeSysctls
		reason, message string
	}{
		"it fits":                 {pod: testPod(), others: []*corev1.Pod{testPod(), testPod()}},
		"an unknown resource":     {pod: testPod(request("example.com/gpu", "1"))},
		"another label of the OS": {pod: testPod(func(p *corev1.Pod) { p.Labels = map[string]string{corev1.LabelOSStable: "windows"} }), reason: "PodOSSelectorNodeLabelDoesNotMatch", message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"},
		"another OS":              {pod: testPod(func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }), reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS"},
		"an unsafe sysctl":        {pod: testPod(sysctl), reason: "SysctlForbidden", message: `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		"a permitted sysctl":      {pod: testPod(sysctl), unsafe: validation.UnsafeSysctls{"kernel.msg*"}},
		"too many pods":           {pod: testPod(), others: []*corev1.Pod{testPod(), testPod(), testPod()}, reason: "OutOfpods", message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"},
		"too much CPU":            {pod: testPod(request(corev1.ResourceCPU, "1600m")), others: []*corev1.Pod{testPod()}, reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1600, used: 500, capacity: 2000"},
		"too much memory":         {pod: testPod(request(corev1.ResourceMemory, "2Gi")), reason: "OutOfmemory", message: "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824"},
		"too much storage":        {pod: testPod(request(corev1.ResourceEphemeralStorage, "11Gi")), reason: "OutOfephemeral-storage", message: "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, capacity: 10737418240"},
		"a device that is taken":  {pod: testPod(request("example.com/card", "1")), node: withCard, others: []*corev1.Pod{testPod(request("example.com/card", "1"))}, reason: "OutOfexample.com/card", message: "Node didn't have enough resource: example.com/card, requested: 1, used: 1, capacity: 1"},
		"a free device":           {pod: testPod(request("example.com/card", "1")), node: withCard},
		"another node":            {pod: testPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"place": "cellar"} }), reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"this node":               {pod: testPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"place": "attic"} })},
		"a port that is taken":    {pod: testPod(port("")), others: []*corev1.Pod{testPod(port("127.0.0.1"))}, reason: "NodePorts", message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		"a port of two addresses": {pod: testPod(port("127.0.0.1")), others: []*corev1.Pod{testPod(port("127.0.0.2"))}},
		"a taint":                 {pod: testPod(), node: tainted, reason: "TaintToleration", message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		"a taint that it tolerates": {pod: testPod(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "broken", Operator: corev1.TolerationOpExists}}
		}), node: tainted},
		"a port of an init container": {pod: testPod(port("")), others: []*corev1.Pod{testPod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Ports: []corev1.ContainerPort{{HostPort: 8080}}}}
		})}},
	} {
		n := tc.node
		if n == nil {
			n = testNode()
		}
		got := admit(tc.pod, n, tc.others, tc.unsafe)
		if got == nil {
			got = &rejection{}
		}
		if got.reason != tc.reason || got.message != tc.message {
			t.Errorf("%s: %s: %s, want %s: %s", name, got.reason, got.message, tc.reason, tc.message)
		}
	}
}
