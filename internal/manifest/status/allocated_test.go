package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

func TestStatusSaysWhatIsAllocated(t *testing.T) {
	p := load(t, podYAML(`{
  resources: {limits: {cpu: 2}},
  initContainers: [{name: i, image: b, resources: {limits: {memory: 8Mi}}}],
  containers: [{name: a, image: b, resources: {requests: {cpu: 100m}, limits: {memory: 16Mi}}}, {name: c, image: b}]}`)).Pod
	st := status.Render(p, &pod.Status{Phase: pod.Running}).Status
	if diff := cmp.Diff(p.Spec.Resources, st.Resources); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(p.Spec.Resources.Requests, st.AllocatedResources); diff != "" {
		t.Error(diff)
	}
	for i, s := range append(st.InitContainerStatuses, st.ContainerStatuses...) {
		spec := append(p.Spec.InitContainers, p.Spec.Containers...)[i]
		if s.Name == "c" {
			if s.Resources != nil || s.AllocatedResources != nil {
				t.Errorf("a container that asks for nothing: %+v", s)
			}
			continue
		}
		if diff := cmp.Diff(&corev1.ResourceRequirements{Requests: spec.Resources.Requests, Limits: spec.Resources.Limits}, s.Resources); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
		if diff := cmp.Diff(spec.Resources.Requests, s.AllocatedResources); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
	}
}
