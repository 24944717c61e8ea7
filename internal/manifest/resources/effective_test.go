package resources

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

const (
	ki = 1 << 10
	mi = 1 << 20
	gi = 1 << 30
)

// The two worked cases of the init-containers proposal must come out exactly.

func TestWorkedCaseLimits(t *testing.T) {
	e := ComputeEffective(manifesttest.Decode(t, manifesttest.PodYAML(`{
  initContainers: [
    {name: i1, image: b, resources: {limits: {cpu: 100m, memory: 1Gi}}},
    {name: i2, image: b, resources: {limits: {cpu: 50m, memory: 2Gi}}}],
  containers: [
    {name: a1, image: b, resources: {limits: {cpu: 10m, memory: 1100Mi}}},
    {name: a2, image: b, resources: {limits: {cpu: 10m, memory: 1100Mi}}}]}`)))
	want := Effective{
		Rule: RuleEffective,
		Pod:  pod.Resources{CPURequest: 100, CPULimit: 100, MemoryRequest: 2200 * mi, MemoryLimit: 2200 * mi},
		InitContainers: []pod.Resources{
			{CPURequest: 100, CPULimit: 100, MemoryRequest: gi, MemoryLimit: gi},
			{CPURequest: 50, CPULimit: 50, MemoryRequest: 2 * gi, MemoryLimit: 2 * gi},
		},
		Containers: []pod.Resources{
			{CPURequest: 10, CPULimit: 10, MemoryRequest: 1100 * mi, MemoryLimit: 1100 * mi},
			{CPURequest: 10, CPULimit: 10, MemoryRequest: 1100 * mi, MemoryLimit: 1100 * mi},
		},
		QOSClass: "Guaranteed",
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
}

func TestWorkedCaseRequest(t *testing.T) {
	e := ComputeEffective(manifesttest.Decode(t, manifesttest.PodYAML(`{
  initContainers: [{name: i, image: b, resources: {limits: {cpu: 100m, memory: 1Gi}}}],
  containers: [{name: a, image: b, resources: {requests: {cpu: 10m, memory: 1100Mi}}}]}`)))
	want := Effective{
		Rule:           RuleEffective,
		Pod:            pod.Resources{CPURequest: 10, CPULimit: 100, MemoryRequest: 1100 * mi, MemoryLimit: 1100 * mi},
		InitContainers: []pod.Resources{{CPURequest: 10, CPULimit: 100, MemoryRequest: gi, MemoryLimit: gi}},
		Containers:     []pod.Resources{{CPURequest: 10, CPULimit: 100, MemoryRequest: 1100 * mi, MemoryLimit: 1100 * mi}},
		QOSClass:       "Burstable",
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
}

// TestEffectiveCPU tests the rules with one resource: request/limit in thousandths of a CPU, - for none.
func TestEffectiveCPU(t *testing.T) {
	type r = pod.Resources
	cpu := func(request, limit int64) r { return r{CPURequest: request, CPULimit: limit} }
	for _, test := range []struct {
		name, spec string
		pod        r
		inits      []r
		apps       []r
	}{
		{"nothing", `{containers: [{name: a, image: b}]}`, r{}, nil, []r{{}}},
		{"a container without a limit gets the pod's",
			`{containers: [{name: a, image: b, resources: {limits: {cpu: 300m}}}, {name: c, image: b}]}`,
			cpu(300, 300), nil, []r{cpu(300, 300), cpu(300, 300)}},
		{"and without a request",
			`{containers: [{name: a, image: b, resources: {requests: {cpu: 200m}, limits: {cpu: 300m}}}, {name: c, image: b}]}`,
			cpu(200, 300), nil, []r{cpu(200, 300), cpu(200, 300)}},
		{"requests alone limit nothing",
			`{containers: [{name: a, image: b, resources: {requests: {cpu: 200m}}}, {name: c, image: b}]}`,
			cpu(200, 0), nil, []r{cpu(200, 0), cpu(200, 0)}},
		{"a limit is never below the request",
			`{containers: [{name: a, image: b, resources: {limits: {cpu: 100m}}}, {name: c, image: b, resources: {requests: {cpu: 500m}}}]}`,
			cpu(600, 600), nil, []r{cpu(100, 100), cpu(500, 600)}},
		{"an init container's request counts if it is one",
			`{initContainers: [{name: i, image: b, resources: {requests: {cpu: 900m}}}], containers: [{name: a, image: b, resources: {requests: {cpu: 100m}}}]}`,
			cpu(900, 0), []r{cpu(900, 0)}, []r{cpu(100, 0)}},
		{"sidecars are added to what runs beside and after them",
			`{initContainers: [
			   {name: before, image: b, resources: {limits: {cpu: 500m}}},
			   {name: side, image: b, restartPolicy: Always, resources: {limits: {cpu: 200m}}},
			   {name: after, image: b, resources: {limits: {cpu: 400m}}}],
			  containers: [{name: a, image: b, resources: {limits: {cpu: 100m}}}]}`,
			cpu(600, 600), []r{cpu(500, 500), cpu(200, 200), cpu(400, 400)}, []r{cpu(100, 100)}},
		{"pod-level resources come first",
			`{resources: {limits: {cpu: 2}, requests: {cpu: 1}}, containers: [{name: a, image: b, resources: {limits: {cpu: 500m}}}, {name: c, image: b}]}`,
			cpu(1000, 2000), nil, []r{cpu(500, 500), cpu(1000, 2000)}},
		{"a pod-level limit alone leaves the request to the containers",
			`{resources: {limits: {cpu: 2}}, containers: [{name: a, image: b, resources: {limits: {cpu: 500m}}}]}`,
			cpu(500, 2000), nil, []r{cpu(500, 500)}},
		{"or is it, where they have none",
			`{resources: {limits: {cpu: 2}}, containers: [{name: a, image: b}]}`,
			cpu(2000, 2000), nil, []r{cpu(2000, 2000)}},
		{"less than a thousandth is a thousandth",
			`{containers: [{name: a, image: b, resources: {limits: {cpu: 100u}}}]}`,
			cpu(1, 1), nil, []r{cpu(1, 1)}},
	} {
		e := ComputeEffective(manifesttest.Decode(t, manifesttest.PodYAML(test.spec)))
		if !reflect.DeepEqual(e.Pod, test.pod) {
			t.Errorf("%s: pod %+v, want %+v", test.name, e.Pod, test.pod)
		}
		if diff := cmp.Diff(append(test.inits, test.apps...), append(e.InitContainers, e.Containers...)); diff != "" {
			t.Errorf("%s: containers:\n%s", test.name, diff)
		}
	}
}

func TestKubeletRule(t *testing.T) {
	load := func(spec string) Effective {
		p := manifesttest.Decode(t, manifesttest.PodYAML(spec))
		p.Annotations = map[string]string{podutil.AnnotationPodLimits: "kubelet"}
		return ComputeEffective(p)
	}
	all := load(`{initContainers: [{name: i, image: b, resources: {limits: {cpu: 1, memory: 1Ki}}}], containers: [{name: a, image: b, resources: {limits: {cpu: 2, memory: 1Ki}}}]}`)
	if want := (pod.Resources{CPURequest: 2000, CPULimit: 2000, MemoryRequest: ki, MemoryLimit: ki}); !reflect.DeepEqual(all.Pod, want) || all.Rule != RuleKubelet {
		t.Errorf("all limited: %+v", all)
	}
	some := load(`{initContainers: [{name: i, image: b, resources: {limits: {memory: 1Ki}}}], containers: [{name: a, image: b, resources: {limits: {cpu: 2, memory: 1Ki}}}]}`)
	if want := (pod.Resources{CPURequest: 2000, MemoryRequest: ki, MemoryLimit: ki}); !reflect.DeepEqual(some.Pod, want) {
		t.Errorf("an init container without a cpu limit: %+v", some.Pod)
	}
	if want := (pod.Resources{MemoryRequest: ki, MemoryLimit: ki}); !reflect.DeepEqual(some.InitContainers[0], want) {
		t.Errorf("it inherits nothing: %+v", some.InitContainers[0])
	}
}

var quantities = map[corev1.ResourceName][]string{
	corev1.ResourceCPU:    {"0", "1", "1m", "100m", "250m", "1500m", "3", "0.1", "1e2"},
	corev1.ResourceMemory: {"0", "1", "128Mi", "1Gi", "1100Mi", "1G", "500k"},
}

func randomPod(t *rapid.T) *corev1.Pod {
	requirements := func() corev1.ResourceRequirements {
		var r corev1.ResourceRequirements
		for _, list := range []*corev1.ResourceList{&r.Limits, &r.Requests} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if rapid.Bool().Draw(t, "set") {
					if *list == nil {
						*list = corev1.ResourceList{}
					}
					(*list)[name] = resource.MustParse(rapid.SampledFrom(quantities[name]).Draw(t, "quantity"))
				}
			}
		}
		return r
	}
	p := &corev1.Pod{}
	for i := range rapid.IntRange(0, 4).Draw(t, "inits") {
		c := corev1.Container{Name: string(rune('a' + i)), Image: "i", Resources: requirements()}
		if rapid.Bool().Draw(t, "sidecar") {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "apps") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: string(rune('n' + i)), Image: "i", Resources: requirements()})
	}
	if rapid.IntRange(0, 3).Draw(t, "pod level") == 0 {
		p.Spec.Resources = new(requirements())
	}
	return p
}

// TestSumsAsKubernetes compares the formula with component-helpers.
func TestSumsAsKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPod(t)
		defaulting.SetDefaults(p)
		options := helpers.PodResourcesOptions{}
		requests, limits := helpers.PodRequests(p, options), helpers.PodLimits(p, options)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			s := declaredAmounts(p, name)
			request := s.pod.request.or(combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.request }))
			limit := s.pod.limit.or(combine(p, s, func(_ int, c requestAndLimit, _ bool) amount { return c.limit }))
			if want := amountOf(requests, name); request != want {
				t.Fatalf("%s request: %+v, Kubernetes %+v", name, request, want)
			}
			if want := amountOf(limits, name); limit != want {
				t.Fatalf("%s limit: %+v, Kubernetes %+v", name, limit, want)
			}
		}
	})
}

// TestEffectiveProperties: properties of every pod under podrun's rule.
func TestEffectiveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPod(t)
		written := p.DeepCopy()
		e := ComputeEffective(p)
		if diff := cmp.Diff(written, p); diff != "" {
			t.Fatalf("the pod was changed:\n%s", diff)
		}
		check := func(what string, limit, request int64, containers []pod.Resources, of func(pod.Resources) (int64, int64)) {
			if p.Spec.Resources == nil && limit > 0 && request > limit {
				t.Fatalf("%s: limit %d below request %d", what, limit, request)
			}
			var sum int64
			for i, c := range containers {
				l, r := of(c)
				sum += l
				if limit > 0 && l == 0 && !zero(written.Spec.Containers[i].Resources.Limits, what) {
					t.Fatalf("%s: container %d has no limit in a pod that has %d", what, i, limit)
				}
				if request > 0 && r == 0 && !zero(written.Spec.Containers[i].Resources.Requests, what) && !zero(written.Spec.Containers[i].Resources.Limits, what) {
					t.Fatalf("%s: container %d has no request in a pod that has %d", what, i, request)
				}
			}
			if p.Spec.Resources == nil && limit == 0 && sum > 0 {
				t.Fatalf("%s: containers are limited and the pod is not", what)
			}
		}
		check("cpu", e.Pod.CPULimit, e.Pod.CPURequest, e.Containers, func(r pod.Resources) (int64, int64) { return r.CPULimit, r.CPURequest })
		check("memory", e.Pod.MemoryLimit, e.Pod.MemoryRequest, e.Containers, func(r pod.Resources) (int64, int64) { return r.MemoryLimit, r.MemoryRequest })
	})
}

// zero reports whether a list has the resource, as 0.
func zero(list corev1.ResourceList, name string) bool {
	q, ok := list[corev1.ResourceName(name)]
	return ok && q.IsZero()
}

func TestSumsDoNotWrap(t *testing.T) {
	e := ComputeEffective(manifesttest.Decode(t, manifesttest.PodYAML(`{containers: [
	  {name: a, image: b, resources: {limits: {memory: 7Ei, cpu: 9223372036854775}}},
	  {name: c, image: b, resources: {limits: {memory: 7Ei, cpu: 9223372036854775}}}]}`)))
	const most = 1<<63 - 1
	if e.Pod.MemoryLimit != most || e.Pod.CPULimit != most {
		t.Errorf("got %+v", e.Pod)
	}
}
