package build_test

import (
	"testing"

	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func TestOOMScoreAdj(t *testing.T) {
	const node = 1000 * mib
	for _, test := range []struct {
		name, spec string
		node       int64
		inits      []int
		apps       []int
	}{
		{"best effort", one(""), node, nil, []int{1000}},
		{"guaranteed", one("resources: {limits: {cpu: 1, memory: 1Gi}}"), node, nil, []int{-997}},
		{"system-node-critical", "{priorityClassName: system-node-critical, containers: [{name: a, image: i}]}", node, nil, []int{-997}},
		{"a tenth of the machine", one("resources: {requests: {memory: 100Mi}}"), node, nil, []int{900}},
		{"rounded as the kubelet does", one("resources: {requests: {memory: 1}}"), node, nil, []int{999}},
		{"nothing of it", one("resources: {requests: {cpu: 1}}"), node, nil, []int{999}},
		{"all of it", one("resources: {requests: {memory: 1000Mi}}"), node, nil, []int{3}},
		{"more than all", one("resources: {requests: {memory: 1Ei}}"), node, nil, []int{3}},
		{"an unknown machine", one("resources: {requests: {memory: 1Gi}}"), 0, nil, []int{999}},
		{"an app container that is always restarted is no sidecar", "{containers: [{name: a, image: i, restartPolicy: Always, resources: {requests: {memory: 1Mi}}}, {name: b, image: i, resources: {requests: {memory: 300Mi}}}]}", node, nil, []int{999, 700}},
		{"a sidecar lives as long as the smallest app", "{initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {memory: 1Mi}}}, {name: i, image: i, resources: {requests: {memory: 10Mi}}}], containers: [{name: a, image: i, resources: {requests: {memory: 200Mi}}}, {name: b, image: i, resources: {requests: {memory: 300Mi}}}]}", node, []int{800, 990}, []int{800, 700}},
		{"a pod-level request is shared out", "{resources: {requests: {memory: 400Mi}}, containers: [{name: a, image: i, resources: {requests: {memory: 200Mi}}}, {name: b, image: i}]}", node, nil, []int{700, 900}},
	} {
		o := load(t, podYAML(test.spec))
		images := map[string]pod.Image{}
		for _, use := range podutil.Images(o.Pod) {
			images[use.Key()] = pod.Image{Cmd: []string{"x"}}
		}
		plan, err := build.Plan(o, images, build.Options{NodeMemory: test.node})
		if err != nil {
			t.Fatal(err)
		}
		check := func(containers []pod.Container, want []int) {
			for i, c := range containers {
				if c.OOMScoreAdj != want[i] {
					t.Errorf("%s: %s has %d, want %d", test.name, c.Name, c.OOMScoreAdj, want[i])
				}
			}
		}
		check(plan.InitContainers, test.inits)
		check(plan.Containers, test.apps)
	}
}
