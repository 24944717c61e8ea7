package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
)

func TestMemoryQoS(t *testing.T) {
	const node = 1 << 30
	build := func(annotation, spec string) *pod.Plan {
		t.Helper()
		o := load(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {"+annotation+"}}\nspec: "+spec+"\n")
		image := pod.Image{ID: "sha256:1", Cmd: []string{"x"}}
		plan, err := build.Plan(o, map[string]pod.Image{"a": image, "b": image, "i": image}, build.Options{Allocatable: corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(node, resource.BinarySI)}})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	type values struct{ min, low, high int64 }
	of := func(r pod.Resources) values { return values{r.MemoryMin, r.MemoryLow, r.MemoryHigh} }
	const burstable = `{containers: [{name: a, image: b, resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}}]}`
	for _, tt := range []struct {
		name, annotation, spec string
		pod, a                 values
	}{
		{"not asked for", "", burstable, values{}, values{}},
		{"not wanted", `podrun.dev/memory-qos: "false"`, burstable, values{}, values{}},
		// 100Mi and nine tenths of another 100Mi, in whole pages.
		{"burstable", `podrun.dev/memory-qos: "true"`, burstable, values{low: 100 * mib}, values{low: 100 * mib, high: 190 * mib}},
		{"guaranteed", `podrun.dev/memory-qos: "true"`, `{containers: [{name: a, image: b, resources: {limits: {cpu: 1, memory: 100Mi}}}]}`,
			values{min: 100 * mib}, values{min: 100 * mib}},
		{"no limit: the machine's memory", `podrun.dev/memory-qos: "true"`, `{containers: [{name: a, image: b}]}`,
			values{}, values{high: 966365184}},
		{"pod-level limit", `podrun.dev/memory-qos: "true"`, `{resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}, containers: [{name: a, image: b}]}`,
			values{low: 100 * mib, high: 190 * mib}, values{low: 100 * mib}},
		{"in whole pages", `podrun.dev/memory-qos: "true"`, `{containers: [{name: a, image: b, resources: {requests: {memory: 1}, limits: {memory: 10003}}}]}`,
			values{low: 1}, values{low: 1, high: 8192}},
		{"less than a page between", `podrun.dev/memory-qos: "true"`, `{containers: [{name: a, image: b, resources: {requests: {memory: 4096}, limits: {memory: 4100}}}]}`,
			values{low: 4096}, values{low: 4096}},
	} {
		plan := build(tt.annotation, tt.spec)
		if diff := cmp.Diff([]values{tt.pod, tt.a}, []values{of(plan.Resources), of(plan.Containers[0].Resources)}, cmp.AllowUnexported(values{})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if got := mistakes("apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {podrun.dev/memory-qos: maybe}}\nspec: " + one("") + "\n"); len(got) != 1 || !strings.Contains(got[0], `Unsupported value: "maybe"`) {
		t.Errorf("%q", got)
	}
}
