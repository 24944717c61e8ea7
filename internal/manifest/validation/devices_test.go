package validation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// TestDevicesByName: devices are requested by name, each once, or by number; invalid names and quantities are
// refused.
func TestDevicesByName(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {cdi.k8s.io/x: 'v.example/c=b,v.example/c=a'}}\nspec:\n  containers: [{name: c, image: i, command: [x], resources: {limits: {"
	o := load(t, head+"v.example/c=own: 1, v.example/c=a: 1, cpu: 1}}}]\n")
	if got := strings.Join(podutil.DeviceNames(o.Pod, &o.Pod.Spec.Containers[0]), " "); got != "v.example/c=b v.example/c=a v.example/c=own" {
		t.Errorf("devices: %s", got)
	}
	if got := podutil.DeviceCounts(&load(t, head+"v.example/c: 2, w.example/c: 0}}}]\n").Pod.Spec.Containers[0]); !slices.Equal(got, []podutil.DeviceCount{{Kind: "v.example/c", Count: 2}}) {
		t.Errorf("counted: %+v", got)
	}
	for _, c := range []struct{ text, want string }{
		{strings.Replace(head, "c=a'", "c'", 1) + "}}}]\n", "a device's name is vendor.com/class=name"},
		{head + "v.example/c=own: 2}}}]\n", "must be 1"},
		{head + "=own: 1}}}]\n", "a device's name is vendor.com/class=name"},
		{head + "c: 1}}}]\n", "only cpu, memory"},
		{head + "v.example/c: 1500m}}}]\n", "must be an integer"},
		{head + "4v.example/c: 1}}}]\n", "both begin with a letter"},
		{head + "kubernetes.io/c: 1}}}]\n", "doesn't follow extended resource name standard"},
		{head + "v.example/c: 2}, requests: {v.example/c: 1}}}]\n", "must be equal to v.example/c limit of 2"},
		{head + "cpu: 1}, requests: {v.example/c: 1}}}]\n", "Limit must be set for non overcommitable resources"},
	} {
		if reported := strings.Join(mistakes(c.text), "\n"); !strings.Contains(reported, c.want) {
			t.Errorf("%s: %q, want %q", c.text, reported, c.want)
		}
	}
}
