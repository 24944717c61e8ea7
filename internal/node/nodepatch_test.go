package node

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/node/nodetest"
)

// TestJoinIsQuiet: an agent prints nothing when it registers a node to which a pod is bound already.
func TestJoinIsQuiet(t *testing.T) {
	b := newBed(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.SetHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/nodes") {
			waitFor(t, "the agent knows the pod", func() bool { return b.agent.Find("default", "web", uid1) != nil })
		}
		return false
	})
	b.run(t)
	b.waitRunning(t, "web")
	if b.out.String() != "" {
		t.Errorf("the agent printed %s", b.out)
	}
}

// TestNodeIsPatched: what other components change in the node between a read and a report of this host stays, and
// nothing is printed. Addresses that the host no longer has go.
func TestNodeIsPatched(t *testing.T) {
	b := newBed(t)
	end := b.run(t)
	n := &corev1.Node{}
	waitFor(t, "the node is registered", func() bool {
		return b.agent.Node.object() != nil && b.agent.Client.Get(t.Context(), nodePath("attic"), n) == nil
	})
	end()
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.99"})
	n.Status.Capacity["old.example/card"], n.Status.Allocatable["old.example/card"] = resource.MustParse("1"), resource.MustParse("1")
	delete(n.Labels, corev1.LabelOSStable)
	b.Put(t, nodePath("attic"), n)
	var change sync.Once
	b.SetHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/nodes/attic") {
			t.Error("the node is replaced, which conflicts with other changes")
		}
		if r.Method == http.MethodPatch {
			change.Do(func() {
				n.Labels["other"] = "set"
				n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionFalse})
				delete(n.Status.Capacity, "old.example/card")
				b.Put(t, nodePath("attic"), n)
			})
		}
		return false
	})
	if err := b.agent.ReportShutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = &corev1.Node{}
	if err := b.agent.Client.Get(t.Context(), nodePath("attic"), n); err != nil {
		t.Fatal(err)
	}
	has := func(kind corev1.NodeConditionType, reason string) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind && c.Reason == reason })
	}
	if n.Labels["other"] != "set" || n.Labels[corev1.LabelOSStable] == "" || len(n.Spec.Taints) != 1 || !has("KernelDeadlock", "") || !has(corev1.NodeReady, "KubeletNotReady") {
		t.Errorf("labels %v, taints %v, conditions %+v", n.Labels, n.Spec.Taints, n.Status.Conditions)
	}
	if len(n.Status.Addresses) != 2 || n.Status.Addresses[0].Address != "192.0.2.7" {
		t.Errorf("addresses %v", n.Status.Addresses)
	}
	if _, had := n.Status.Capacity["old.example/card"]; had || b.out.String() != "" {
		t.Errorf("capacity %v; the agent printed %s", n.Status.Capacity, b.out)
	}
}

// TestReportShutdown: when the machine shuts down the API server reads that the node is not ready. Its pods keep their
// status: the next agent resumes them.
func TestReportShutdown(t *testing.T) {
	b := newBed(t)
	end := b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	end()
	if err := b.agent.ReportShutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{}
	if err := b.agent.Client.Get(t.Context(), nodePath("attic"), n); err != nil {
		t.Fatal(err)
	}
	ready := n.Status.Conditions[slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })]
	if ready.Status != corev1.ConditionFalse || ready.Reason != "KubeletNotReady" || ready.Message != "node is shutting down" {
		t.Errorf("condition %+v", ready)
	}
	if phase := b.Pod("web").Status.Phase; phase != corev1.PodRunning {
		t.Errorf("the pod is %s", phase)
	}
}
