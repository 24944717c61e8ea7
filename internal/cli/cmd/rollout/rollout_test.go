package rollout

import (
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
)

// TestSetPaused: only a Deployment is paused, and each of pause and resume once.
func TestSetPaused(t *testing.T) {
	v := &resource.WorkloadInfo{Object: &pod.Object{Kind: pod.KindDeployment, Name: "web"}}
	paused, running := &appsv1.Deployment{}, &appsv1.Deployment{}
	paused.Spec.Paused = true
	for _, tt := range []struct {
		object metav1.Object
		pause  bool
		want   string
	}{
		{running.DeepCopy(), true, ""},
		{paused.DeepCopy(), false, ""},
		{paused.DeepCopy(), true, "deployment.apps/web is already paused"},
		{running.DeepCopy(), false, "deployment.apps/web is not paused"},
		{&appsv1.StatefulSet{}, true, "deployment.apps/web cannot be paused: only a Deployment can"},
	} {
		err := setPaused(tt.pause)(v, tt.object)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
		if d, ok := tt.object.(*appsv1.Deployment); ok && err == nil && d.Spec.Paused != tt.pause {
			t.Errorf("paused: %t", d.Spec.Paused)
		}
	}
}

func TestNoRollout(t *testing.T) {
	for want, ref := range map[string]kindnames.ObjectRef{
		"pod/web has no rollout":       {Name: "web"},
		"job.batch/web has no rollout": {Kind: pod.KindJob, Name: "web"},
	} {
		if err := noRollout(ref); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestValidate: numbers that are no counts and no revisions.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		command interface{ Validate() error }
		want    string
	}{
		{&scaleOptions{replicas: 3, current: -1}, ""},
		{&scaleOptions{replicas: -1, current: -1}, "the --replicas=COUNT flag is required"},
		{&scaleOptions{replicas: math.MaxInt32 + 1, current: -1}, "--replicas must not be greater than"},
		{&scaleOptions{current: -2}, "--current-replicas must not be negative"},
		{&historyOptions{}, ""},
		{&historyOptions{revision: -1}, "--revision must be positive"},
		{&undoOptions{}, ""},
		{&undoOptions{revision: -1}, "--to-revision must not be negative"},
		{&setImageOptions{images: map[string]string{"c": "x"}}, ""},
		{&setImageOptions{}, "at least one image update is required"},
	} {
		if err := tt.command.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.command, err, tt.want)
		}
	}
}
