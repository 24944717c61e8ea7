package manifest

import (
	"testing"

	"github.com/podrun/podrun/manifest/manifesttest"
	"github.com/podrun/podrun/pod"
)

func TestQOSClass(t *testing.T) {
	const full = "resources: {limits: {cpu: 1, memory: 1Gi}}"
	for _, test := range []struct{ name, spec, want string }{
		{"nothing", manifesttest.One(""), "BestEffort"},
		{"zero is nothing", manifesttest.One("resources: {requests: {cpu: 0}}"), "BestEffort"},
		{"all limits", manifesttest.One(full), "Guaranteed"},
		{"limits equal to requests", manifesttest.One("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1000m, memory: 1024Mi}}"), "Guaranteed"},
		{"a lower request", manifesttest.One("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1m}}"), "Burstable"},
		{"cpu alone", manifesttest.One("resources: {limits: {cpu: 1}}"), "Burstable"},
		{"one container has none", "{containers: [{name: a, image: i, " + full + "}, {name: b, image: i}]}", "Burstable"},
		{"an init container has none", "{initContainers: [{name: a, image: i}], containers: [{name: b, image: i, " + full + "}]}", "Burstable"},
		{"init containers count", "{initContainers: [{name: a, image: i, " + full + "}], containers: [{name: b, image: i, " + full + "}]}", "Guaranteed"},
		{"pod level decides", "{" + full + ", containers: [{name: a, image: i}]}", "Guaranteed"},
		{"pod level decides, down", "{resources: {requests: {cpu: 2}, limits: {cpu: 3}}, containers: [{name: a, image: i, " + full + "}]}", "Burstable"},
		{"an empty pod level does not", "{resources: {}, containers: [{name: a, image: i, " + full + "}]}", "Guaranteed"},
	} {
		if got := EffectiveResources(manifesttest.Decode(t, manifesttest.PodYAML(test.spec))).QOSClass; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

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
		for _, use := range Images(o.Pod) {
			images[use.Key()] = pod.Image{Cmd: []string{"x"}}
		}
		plan, err := Build(o, images, Options{NodeMemory: test.node})
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
