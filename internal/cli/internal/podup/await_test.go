package podup

import (
	"testing"
	"time"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

func TestStateReached(t *testing.T) {
	exited := func(code int) pod.State {
		return pod.State{Terminated: &pod.Terminated{ExitCode: code, Reason: "Error"}}
	}
	running := pod.State{Running: &pod.RunningAt{}}
	status := func(phase pod.Phase, list ...pod.ContainerStatus) *pod.Status {
		st := &pod.Status{Phase: phase, Containers: list}
		if phase == pod.Running && list[0].Ready {
			st.Conditions = []pod.Condition{{Type: "Ready", Status: "True"}}
		}
		return st
	}
	db := pod.ContainerStatus{Name: "db", State: running, Started: true}
	ready, unhealthy, crashing := db, db, db
	ready.Ready, unhealthy.Unhealthy = true, true
	crashing.State, crashing.LastState = pod.State{Waiting: &pod.Waiting{Reason: "CrashLoopBackOff"}}, exited(3)
	ended := pod.ContainerStatus{Name: "db", State: exited(4)}
	for name, tt := range map[string]struct {
		st      *pod.Status
		state   string
		grace   time.Duration
		reached bool
		failed  string
	}{
		"ready":                       {status(pod.Running, ready), podutil.AfterReady, 0, true, ""},
		"not yet ready":               {status(pod.Running, db), podutil.AfterReady, 0, false, ""},
		"Ready waits":                 {status(pod.Running, unhealthy), podutil.AfterReady, 0, false, ""},
		"healthy":                     {status(pod.Running, ready), podutil.AfterHealthy, 0, true, ""},
		"not yet healthy":             {status(pod.Running, db), podutil.AfterHealthy, 0, false, ""},
		"unhealthy":                   {status(pod.Running, unhealthy), podutil.AfterHealthy, 0, false, "container db is unhealthy"},
		"unhealthy in the grace":      {status(pod.Running, unhealthy), podutil.AfterHealthy, 2 * time.Minute, false, ""},
		"unhealthy after the grace":   {status(pod.Running, unhealthy), podutil.AfterHealthy, time.Minute, false, "container db is unhealthy"},
		"crashes":                     {status(pod.Running, crashing), podutil.AfterHealthy, 0, false, "container db exited with code 3"},
		"Ready waits for a restart":   {status(pod.Running, crashing), podutil.AfterReady, 0, false, ""},
		"one of two has ended":        {status(pod.Running, db, ended), podutil.AfterHealthy, 0, false, "container db exited with code 4"},
		"failed":                      {status(pod.Failed, ended), podutil.AfterHealthy, 0, false, "container db exited with code 4"},
		"not completed":               {status(pod.Failed, ended), podutil.AfterSucceeded, 0, false, "container db exited with code 4"},
		"completed":                   {status(pod.Succeeded), podutil.AfterSucceeded, 0, true, ""},
		"completed instead of ready":  {status(pod.Succeeded), podutil.AfterReady, 0, false, "it has ended with the phase Succeeded"},
		"ended, but had been started": {status(pod.Failed, ended), podutil.AfterRunning, 0, true, ""},
		"image may come":              {&pod.Status{Phase: pod.Pending, ImagePull: &pod.ImagePull{Error: "no route", Retryable: true}, Containers: []pod.ContainerStatus{{}}}, podutil.AfterReady, 0, false, ""},
		"image does not exist":        {&pod.Status{Phase: pod.Pending, ImagePull: &pod.ImagePull{Error: "manifest unknown"}, Containers: []pod.ContainerStatus{{}}}, podutil.AfterReady, 0, false, "manifest unknown"},
	} {
		reached, failed := stateReached(tt.st, podutil.StartAfter{Pod: "db", State: tt.state, Grace: tt.grace}, time.Minute)
		text := ""
		if failed != nil {
			text = failed.text
		}
		if reached != tt.reached || text != tt.failed {
			t.Errorf("%s: %v, %q", name, reached, text)
		}
	}
}
