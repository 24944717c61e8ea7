package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
)

func TestStorageLimits(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name, spec string
		want       []pod.Limit
	}{
		{"none", `{containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: z, emptyDir: {sizeLimit: 0}}]}`, nil},
		{"a volume", `{containers: [{name: c, image: i}], volumes: [{name: v, emptyDir: {sizeLimit: 10Mi}}, {name: w, emptyDir: {sizeLimit: "1e3"}}]}`, []pod.Limit{
			{Kind: pod.VolumeLimit, Name: "v", Bytes: 10 * mib, Message: `Usage of EmptyDir volume "v" exceeds the limit "10Mi". `},
			{Kind: pod.VolumeLimit, Name: "w", Bytes: 1000, Message: `Usage of EmptyDir volume "w" exceeds the limit "1e3". `},
		}},
		{"containers: the pod has what any of them declare, init containers count for it alone", `{
initContainers: [{name: i, image: i, resources: {limits: {ephemeral-storage: 50Mi}}}, {name: s, image: i, restartPolicy: Always, resources: {limits: {ephemeral-storage: 5Mi}}}],
containers: [{name: a, image: i, resources: {limits: {ephemeral-storage: 20Mi}}}, {name: b, image: i}]}`, []pod.Limit{
			{Kind: pod.PodLimit, Bytes: 50 * mib, Message: `Pod ephemeral local storage usage exceeds the total limit of containers 50Mi. `},
			{Kind: pod.ContainerLimit, Name: "a", Bytes: 20 * mib, Message: `Container a exceeded its local ephemeral storage limit "20Mi". `},
			{Kind: pod.ContainerLimit, Name: "s", Bytes: 5 * mib, Message: `Container s exceeded its local ephemeral storage limit "5Mi". `},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			planned := mustBuild(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: "+tt.spec+"\n", pod.Image{Cmd: []string{"x"}})
			if diff := cmp.Diff(tt.want, planned.Storage); diff != "" {
				t.Error(diff)
			}
		})
	}
}
