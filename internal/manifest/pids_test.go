package manifest

import (
	"fmt"
	"strings"
	"testing"
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
