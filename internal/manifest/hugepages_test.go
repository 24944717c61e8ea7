package manifest_test

import (
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

// TestHugePages: the pod has the higher of its init containers' and its app containers' limits; a size that
// any container names is limited for each.
func TestHugePages(t *testing.T) {
	o := load(t, hugeManifest)
	got := []map[string]int64{o.Effective.Pod.HugePages, o.Effective.InitContainers[0].HugePages, o.Effective.Containers[0].HugePages, o.Effective.Containers[1].HugePages}
	want := []map[string]int64{{"2MB": 8 << 20, "1GB": 1 << 30}, {"2MB": 8 << 20, "1GB": 0}, {"2MB": 4 << 20, "1GB": 1 << 30}, {"2MB": 2 << 20, "1GB": 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
