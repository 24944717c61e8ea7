package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
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

// TestHugePagesVolumes: a volume of huge pages has a size that a container has, or the only one.
func TestHugePagesVolumes(t *testing.T) {
	for _, test := range []struct {
		medium, limits, want string
		size                 int64
	}{
		{"HugePages", "hugepages-2Mi: 2Mi", "", 2 << 20},
		{"HugePages-2Mi", "hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi", "", 2 << 20},
		{"HugePages-1Gi", "hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi", "", 1 << 30},
		{"HugePages-1Gi", "hugepages-2Mi: 2Mi", `spec.volumes[0].emptyDir.medium: Invalid value: "HugePages-1Gi": no container has a limit of hugepages-1Gi`, 0},
		{"HugePages", "cpu: 1", `spec.volumes[0].emptyDir.medium: Invalid value: "HugePages": no container has a limit of huge pages`, 0},
		{"HugePages", "hugepages-2Mi: 2Mi, hugepages-1Gi: 1Gi", `spec.volumes[0].emptyDir.medium: Invalid value: "HugePages": containers have huge pages of several sizes: name one, as in HugePages-2Mi`, 0},
		{"HugePages-3Mi", "hugepages-2Mi: 2Mi", `spec.volumes[0].emptyDir.medium: "HugePages-3Mi" is not supported yet, only Memory, HugePages, HugePages-2Mi, HugePages-1Gi, HugePages-64Ki, HugePages-32Mi`, 0},
	} {
		text := podYAML("{automountServiceAccountToken: false, containers: [{name: c, image: i, command: [x], resources: {limits: {memory: 64Mi, " + test.limits + "}}}], volumes: [{name: v, emptyDir: {medium: " + test.medium + "}}]}")
		if test.want != "" {
			if got := strings.Join(mistakes(text), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("%s, %s: %s", test.medium, test.limits, got)
			}
			continue
		}
		plan, err := Build(load(t, text), map[string]pod.Image{"c": {}}, BuildOptions{UID: "u"})
		if err != nil {
			t.Errorf("%s, %s: %v", test.medium, test.limits, err)
			continue
		}
		if diff := cmp.Diff([]pod.Volume{{Name: "v", Kind: pod.EmptyDirHugePages, PageSize: test.size}}, plan.Volumes); diff != "" {
			t.Errorf("%s, %s: %s", test.medium, test.limits, diff)
		}
	}
}

func TestHugePagesAreChecked(t *testing.T) {
	for resources, want := range map[string]string{
		"limits: {hugepages-2Mi: 2Mi}":                                           "HugePages require cpu or memory",
		"limits: {cpu: 1, hugepages-2Mi: 3Mi}":                                   "3Mi is not positive integer multiple of hugepages-2Mi",
		"{limits: {cpu: 1, hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 2Mi}}": "must be equal to hugepages-2Mi limit of 4Mi",
		"requests: {cpu: 1, hugepages-2Mi: 2Mi}":                                 "Limit must be set for non overcommitable resources",
		"limits: {cpu: 1, hugepages-5Mi: 5Mi}":                                   "only cpu, memory, ephemeral-storage, hugepages-…, pids and CDI devices",
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
