package logstream

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestOverBy: a container's own restartPolicy counts before the pod's.
func TestOverBy(t *testing.T) {
	failed, done := &pod.Terminated{ExitCode: 1}, &pod.Terminated{}
	for name, tt := range map[string]struct {
		c      pod.Container
		policy pod.RestartPolicy
		end    *pod.Terminated
		want   bool
	}{
		"it runs":                         {pod.Container{}, pod.RestartNever, nil, false},
		"never":                           {pod.Container{}, pod.RestartNever, failed, true},
		"on failure, and it has failed":   {pod.Container{}, pod.RestartOnFailure, failed, false},
		"on failure, and it is done":      {pod.Container{}, pod.RestartOnFailure, done, true},
		"always in a pod with never":      {pod.Container{RestartPolicy: pod.RestartAlways}, pod.RestartNever, done, false},
		"never in a pod with always":      {pod.Container{RestartPolicy: pod.RestartNever}, pod.RestartAlways, failed, true},
		"a rule may restart it":           {pod.Container{RestartPolicy: pod.RestartNever, RestartRules: []pod.RestartRule{{ExitCodes: []int{1}}}}, pod.RestartNever, failed, false},
		"a sidecar is restarted whatever": {pod.Container{Sidecar: true}, pod.RestartNever, done, false},
	} {
		s := NewOne(&tt.c, false, nil)
		st := &pod.ContainerStatus{State: pod.State{Terminated: tt.end}}
		if got := s.isLast(tt.policy, st); got != tt.want {
			t.Errorf("%s: over is %t, want %t", name, got, tt.want)
		}
	}
}
