package oracle

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/qos"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
)

// TestQOSAndOOM: the QoS class and the OOM scores are the kubelet's.
func TestQOSAndOOM(t *testing.T) {
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, false}
		p := d.pod()
		p.Name, p.Namespace, p.Labels = "p", "", nil
		if d.rarely() {
			p.Spec.PriorityClassName, p.Spec.Priority = "system-node-critical", new(int32(2000001000))
		}
		memory := d.number(1<<20, 1<<30, 3<<30, 1<<40)
		plan := planOf(p, memory)
		if plan == nil {
			return
		}
		tried++
		p = serverDefaults(t, p)
		if got, want := plan.QOSClass, string(v1qos.ComputePodQOS(p)); got != want {
			t.Fatalf("class %s, the kubelet says %s", got, want)
		}
		for i := range p.Spec.InitContainers {
			if got, want := plan.InitContainers[i].OOMScoreAdj, qos.GetContainerOOMScoreAdjust(p, &p.Spec.InitContainers[i], memory); got != want {
				t.Fatalf("init container %d: %d, the kubelet says %d", i, got, want)
			}
		}
		for i := range p.Spec.Containers {
			if got, want := plan.Containers[i].OOMScoreAdj, qos.GetContainerOOMScoreAdjust(p, &p.Spec.Containers[i], memory); got != want {
				t.Fatalf("container %d: %d, the kubelet says %d", i, got, want)
			}
		}
	})
	if tried == 0 {
		t.Error("no pod was right")
	}
}

// planOf builds a Pod as podrun up would; nil if it is invalid.
func planOf(p *corev1.Pod, memory int64) *pod.Plan {
	return planFor(p, manifest.BuildOptions{UID: "u", NodeName: "n", NodeMemory: memory})
}

func planFor(p *corev1.Pod, o manifest.BuildOptions) *pod.Plan {
	text, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	objects, err := manifest.Load("p", text)
	if err != nil {
		return nil
	}
	images := map[string]pod.Image{}
	for _, use := range manifest.Images(objects[0].Pod) {
		images[use.Container] = pod.Image{Cmd: []string{"run"}}
	}
	plan, err := manifest.Build(&objects[0], images, o)
	if err != nil {
		return nil
	}
	return plan
}

// TestExpansion: $(VAR) has the same meaning as for the kubelet.
func TestExpansion(t *testing.T) {
	vars := map[string]string{"A": "a", "B": "$(A)", "C": ""}
	part := rapid.SampledFrom([]string{"$", "$$", "(", ")", "$(A)", "$(B)", "$(C)", "$(D)", "$(", "A", "x", "ä", " ", "$("})
	rapid.Check(t, func(t *rapid.T) {
		in := ""
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			in += part.Draw(t, "part")
		}
		p := &corev1.Pod{}
		p.Name = "p"
		p.APIVersion, p.Kind = "v1", "Pod"
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Command: []string{"x", in},
			Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "$$(A)"}, {Name: "C"}}}}
		plan := planOf(p, 0)
		if plan == nil {
			t.Fatal("refused")
		}
		plan.ServiceLinks = false
		e, err := environ.Resolve(plan, &plan.Containers[0], environ.Sources{})
		if err != nil {
			t.Fatal(err)
		}
		want := expansion.Expand(in, expansion.MappingFuncFor(vars))
		if diff := cmp.Diff(want, e.Args[1]); diff != "" {
			t.Fatalf("%q:\n%s", in, diff)
		}
	})
}
