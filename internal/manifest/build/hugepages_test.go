package build_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
)

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
		plan, err := build.Plan(load(t, text), map[string]pod.Image{"c": {}}, build.Options{UID: "u"})
		if err != nil {
			t.Errorf("%s, %s: %v", test.medium, test.limits, err)
			continue
		}
		if diff := cmp.Diff([]pod.Volume{{Name: "v", Kind: pod.EmptyDirHugePages, PageSize: test.size}}, plan.Volumes); diff != "" {
			t.Errorf("%s, %s: %s", test.medium, test.limits, diff)
		}
	}
}
