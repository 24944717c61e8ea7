package resources

import (
	"testing"

	"github.com/podrun/podrun/internal/manifest/manifesttest"
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
		if got := ComputeEffective(manifesttest.Decode(t, manifesttest.PodYAML(test.spec))).QOSClass; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
