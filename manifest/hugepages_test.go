package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hugeManifest = `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
  - {name: i, image: x, resources: {limits: {memory: 8Mi, hugepages-2Mi: 8Mi}}}
  containers:
  - {name: a, image: x, resources: {limits: {memory: 8Mi, hugepages-2Mi: 4Mi, hugepages-1Gi: 1Gi}}}
  - {name: b, image: x, resources: {limits: {memory: 8Mi, hugepages-2Mi: 2Mi}}}
`

// The pod has the higher of what its init and its app containers have; a size that any
// container names is limited for each.
func TestHugePages(t *testing.T) {
	o := load(t, hugeManifest)
	got := []map[string]int64{o.Effective.Pod.HugePages, o.Effective.InitContainers[0].HugePages, o.Effective.Containers[0].HugePages, o.Effective.Containers[1].HugePages}
	want := []map[string]int64{{"2MB": 8 << 20, "1GB": 1 << 30}, {"2MB": 8 << 20, "1GB": 0}, {"2MB": 4 << 20, "1GB": 1 << 30}, {"2MB": 2 << 20, "1GB": 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for size, name := range map[int64]string{64 << 10: "64KB", 2 << 20: "2MB", 1 << 30: "1GB"} {
		if got := pageName(size); got != name {
			t.Errorf("%d is %s, want %s", size, got, name)
		}
	}
}

func TestHugePagesAreChecked(t *testing.T) {
	for resources, want := range map[string]string{
		"limits: {hugepages-2Mi: 2Mi}":                                           "HugePages require cpu or memory",
		"limits: {cpu: 1, hugepages-2Mi: 3Mi}":                                   "3Mi is not positive integer multiple of hugepages-2Mi",
		"{limits: {cpu: 1, hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 2Mi}}": "must be equal to hugepages-2Mi limit of 4Mi",
		"requests: {cpu: 1, hugepages-2Mi: 2Mi}":                                 "Limit must be set for non overcommitable resources",
		"limits: {cpu: 1, hugepages-5Mi: 5Mi}":                                   "only cpu, memory, ephemeral-storage and hugepages-…",
	} {
		if resources[0] != '{' {
			resources = "{" + resources + "}"
		}
		err := strings.Join(mistakes("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x, resources: "+resources+"}]}\n"), "\n")
		if !strings.Contains(err, want) {
			t.Errorf("%s: %s", resources, err)
		}
	}
}
