package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest"
)

// TestPids: a container's limit of processes is an integer, has no request, and adds up for the pod.
func TestPids(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  initContainers: [{name: i, image: i, resources: {limits: {pids: 9}}}]\n  containers: [{name: c, image: i, resources: {%s}}, {name: d, image: i, resources: {limits: {pids: 7}}}]\n"
	o := load(t, fmt.Sprintf(text, "limits: {pids: 5}"))
	e := o.Effective
	if e.Pod.Pids != 12 || e.Containers[0].Pids != 5 || e.Containers[1].Pids != 7 || e.InitContainers[0].Pids != 9 || e.QOSClass != "BestEffort" {
		t.Errorf("%+v", e)
	}
	if len(o.Pod.Spec.Containers[0].Resources.Requests) > 0 {
		t.Errorf("requests %v", o.Pod.Spec.Containers[0].Resources.Requests)
	}
	const integer = "spec.containers[0].resources.limits[pids]: Invalid value: %q: must be an integer, must be between 1 and 4194304, inclusive"
	for resources, want := range map[string]string{
		"limits: {pids: 0}":                      fmt.Sprintf(integer, "0"),
		"limits: {pids: 1500m}":                  fmt.Sprintf(integer, "1500m"),
		"limits: {pids: 5M}":                     fmt.Sprintf(integer, "5M"),
		"requests: {pids: 1}":                    "spec.containers[0].resources.requests[pids]: not supported yet: pids is a limit only",
		"requests: {pids: 1}, limits: {pids: 2}": "pids is a limit only",
	} {
		if got := strings.Join(mistakes(fmt.Sprintf(text, resources)), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", resources, got)
		}
	}
}

// TestPodPids: a pod's own limit of processes replaces the sum of its containers'. It is no pod-level resource that
// decides the QoS class or gets defaults, and does not change while the pod runs.
func TestPodPids(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  resources: {%s}\n  containers:\n  - {name: c, image: i, resources: {requests: {cpu: 1}, limits: {pids: 1000}}}\n  - {name: d, image: i, resources: {limits: {pids: 900}}}\n"
	o := load(t, fmt.Sprintf(text, "limits: {pids: 1500}"))
	e := o.Effective
	if e.Pod.Pids != 1500 || !e.Pod.PodPids || e.Containers[0].Pids != 1000 || e.QOSClass != "Burstable" {
		t.Errorf("%+v", e)
	}
	if r := o.Pod.Spec.Resources; len(r.Requests) > 0 || len(r.Limits) != 1 {
		t.Errorf("resources of the pod: %+v", r)
	}
	if e := load(t, fmt.Sprintf(text, "limits: {memory: 1Gi}")).Effective; e.Pod.Pids != 1900 || e.Pod.PodPids {
		t.Errorf("without a limit of the pod: %+v", e)
	}
	d, err := manifest.Compare(o.Pod, load(t, fmt.Sprintf(text, "limits: {pids: 1600}")).Pod)
	if err != nil || !slices.Equal(d.Immutable, []string{"spec.resources.limits.pids"}) {
		t.Errorf("a change: %+v, %v", d, err)
	}
	const integer = "spec.resources.limits[pids]: Invalid value: %q: must be an integer, must be between 128 and 16384, inclusive"
	for resources, want := range map[string]string{
		"limits: {pids: 127}":     fmt.Sprintf(integer, "127"),
		"limits: {pids: 16385}":   fmt.Sprintf(integer, "16385"),
		"limits: {pids: 128500m}": fmt.Sprintf(integer, "128500m"),
		"limits: {pids: 950}":     `spec.containers[0].resources.limits[pids]: Invalid value: "1k": must be less than or equal to pod limits of 950`,
		"requests: {pids: 500}":   "spec.resources.requests[pids]: not supported yet: pids is a limit only",
	} {
		if got := strings.Join(mistakes(fmt.Sprintf(text, resources)), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", resources, got)
		}
	}
}
