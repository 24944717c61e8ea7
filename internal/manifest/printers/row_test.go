package printers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testmanifest"
)

func waiting(reason string) pod.ContainerStatus {
	return pod.ContainerStatus{State: pod.State{Waiting: &pod.Waiting{Reason: reason}}}
}

func running(ready bool) pod.ContainerStatus {
	return pod.ContainerStatus{Ready: ready, Started: true, State: pod.State{Running: &pod.RunningAt{StartedAt: testmanifest.Noon}}}
}

func exited(code, signal int, reason string) pod.ContainerStatus {
	return pod.ContainerStatus{State: pod.State{Terminated: &pod.Terminated{ExitCode: code, Signal: signal, Reason: reason, FinishedAt: testmanifest.Noon}}}
}

// again returns a container that was restarted, the last time the given duration before noon.
func again(c pod.ContainerStatus, restarts int, ago time.Duration) pod.ContainerStatus {
	c.RestartCount = restarts
	c.LastState = pod.State{Terminated: &pod.Terminated{ExitCode: 1, Reason: "Error", FinishedAt: testmanifest.Noon.Add(-ago)}}
	return c
}

var (
	initialized = pod.Condition{Type: "Initialized", Status: "True"}
	ready       = pod.Condition{Type: "Ready", Status: "True"}
)

// TestRow tests kubectl's printPod, case by case. The pod has the init containers init and side, the latter
// a sidecar, and the app containers a and b.
func TestRow(t *testing.T) {
	done, creating := exited(0, 0, "Completed"), waiting("PodInitializing")
	type all []pod.ContainerStatus
	for _, test := range []struct {
		name       string
		status     pod.Status
		inits, app all
		want       [3]string // ready, status, restarts
	}{
		{"nothing known", pod.Status{Phase: pod.Pending}, nil, nil, [3]string{"0/3", "Init:0/2", "0"}},
		{"first init runs", pod.Status{Phase: pod.Pending}, all{running(false), creating}, all{creating, creating}, [3]string{"0/3", "Init:0/2", "0"}},
		{"sidecar not started", pod.Status{Phase: pod.Pending}, all{done, creating}, all{creating, creating}, [3]string{"0/3", "Init:1/2", "0"}},
		{"init failed", pod.Status{Phase: pod.Pending}, all{exited(1, 0, "Error"), creating}, all{creating, creating}, [3]string{"0/3", "Init:Error", "0"}},
		{"init backs off", pod.Status{Phase: pod.Pending}, all{again(waiting("CrashLoopBackOff"), 3, 5*time.Minute), creating}, all{creating, creating}, [3]string{"0/3", "Init:CrashLoopBackOff", "3 (5m ago)"}},
		{"init exit code", pod.Status{Phase: pod.Pending}, all{exited(2, 0, ""), creating}, all{creating, creating}, [3]string{"0/3", "Init:ExitCode:2", "0"}},
		{"init signal", pod.Status{Phase: pod.Pending}, all{exited(137, 9, ""), creating}, all{creating, creating}, [3]string{"0/3", "Init:Signal:9", "0"}},
		{"inits done", pod.Status{Phase: pod.Pending}, all{done, running(true)}, all{creating, creating}, [3]string{"1/3", "PodInitializing", "0"}},
		{"all run", pod.Status{Phase: pod.Running, Conditions: []pod.Condition{initialized, ready}}, all{done, running(true)}, all{running(true), running(true)}, [3]string{"3/3", "Running", "0"}},
		{"one backs off", pod.Status{Phase: pod.Running}, all{done, running(true)}, all{running(true), again(waiting("CrashLoopBackOff"), 2, 30*time.Second)}, [3]string{"2/3", "CrashLoopBackOff", "2 (30s ago)"}},
		{"evicted", pod.Status{Phase: pod.Failed, Reason: "Evicted", Conditions: []pod.Condition{initialized}}, all{done, done}, all{exited(137, 9, "Error"), done}, [3]string{"0/3", "Evicted", "0"}},
		{"out of memory", pod.Status{Phase: pod.Failed, Conditions: []pod.Condition{initialized}}, all{done, done}, all{exited(137, 9, "OOMKilled"), done}, [3]string{"0/3", "OOMKilled", "0"}},
		{"the first of two speaks", pod.Status{Phase: pod.Running}, all{done, running(true)}, all{exited(1, 0, "Error"), waiting("CrashLoopBackOff")}, [3]string{"1/3", "Error", "0"}},
		{"exit code", pod.Status{Phase: pod.Failed}, all{done, done}, all{exited(137, 0, ""), done}, [3]string{"0/3", "ExitCode:137", "0"}},
		{"signal", pod.Status{Phase: pod.Failed}, all{done, done}, all{exited(137, 9, ""), done}, [3]string{"0/3", "Signal:9", "0"}},
		{"oom", pod.Status{Phase: pod.Failed}, all{done, done}, all{exited(137, 9, "OOMKilled"), done}, [3]string{"0/3", "OOMKilled", "0"}},
		{"all done", pod.Status{Phase: pod.Succeeded}, all{done, done}, all{done, done}, [3]string{"0/3", "Completed", "0"}},
		{"one done, one ready, pod ready", pod.Status{Phase: pod.Running, Conditions: []pod.Condition{ready}}, all{done, running(true)}, all{done, running(true)}, [3]string{"2/3", "Running", "0"}},
		{"one done, one ready, pod not ready", pod.Status{Phase: pod.Running}, all{done, running(true)}, all{done, running(true)}, [3]string{"2/3", "NotReady", "0"}},
		{"one done, one failed", pod.Status{Phase: pod.Running}, all{done, running(true)}, all{done, exited(1, 0, "Error")}, [3]string{"1/3", "Error", "0"}},
		{"stopping", pod.Status{Phase: pod.Running, Deleting: true}, all{done, running(true)}, all{running(true), running(true)}, [3]string{"3/3", "Terminating", "0"}},
		{"stopped", pod.Status{Phase: pod.Succeeded, Deleting: true}, all{done, done}, all{done, done}, [3]string{"0/3", "Completed", "0"}},
		{"deadline", pod.Status{Phase: pod.Failed, Reason: "DeadlineExceeded"}, all{running(false), creating}, nil, [3]string{"0/3", "Init:0/2", "0"}},
		{"deadline, no word of containers", pod.Status{Phase: pod.Failed, Reason: "DeadlineExceeded"}, all{done, done}, all{running(false), running(false)}, [3]string{"0/3", "DeadlineExceeded", "0"}},
		{"unknown", pod.Status{Phase: pod.Unknown}, all{done, running(true)}, all{running(false), running(false)}, [3]string{"1/3", "Unknown", "0"}},
		{"restarts of done inits do not count, restarts of sidecars do", pod.Status{Phase: pod.Running, Conditions: []pod.Condition{initialized, ready}},
			all{again(done, 5, time.Second), again(running(true), 1, 2*time.Hour)}, all{again(running(true), 2, time.Hour), running(true)}, [3]string{"3/3", "Running", "3 (60m ago)"}},
		{"once initialised, the apps are looked at too", pod.Status{Phase: pod.Running, Conditions: []pod.Condition{initialized}},
			all{done, waiting("CrashLoopBackOff")}, all{running(true), running(true)}, [3]string{"2/3", "Init:CrashLoopBackOff", "0"}},
	} {
		st := test.status
		for i, name := range []string{"init", "side"} {
			if i < len(test.inits) {
				c := test.inits[i]
				c.Name = name
				st.InitContainers = append(st.InitContainers, c)
			}
		}
		for i, name := range []string{"a", "b"} {
			if i < len(test.app) {
				c := test.app[i]
				c.Name = name
				st.Containers = append(st.Containers, c)
			}
		}
		r := printers.PodRow(testmanifest.ThreePod(t).Pod, &st, testmanifest.Noon)
		if diff := cmp.Diff(test.want, [3]string{r.Ready, r.Status, r.Restarts}); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
		{ // the supervisor, which has no Kubernetes types, prints the same
			restarts, _, _ := strings.Cut(test.want[2], " ")
			sum := pod.Summarize(&pod.Plan{InitContainers: []pod.Container{{Name: "init"}, {Name: "side", Sidecar: true}}, Containers: []pod.Container{{Name: "a"}, {Name: "b"}}}, &st)
			if got := [3]string{fmt.Sprintf("%d/%d", sum.Ready, sum.Total), sum.Status, fmt.Sprint(sum.Restarts)}; got != [3]string{test.want[0], test.want[1], restarts} {
				t.Errorf("%s: the supervisor sums up %v", test.name, got)
			}
		}
		if r.Name != "p" || r.Age != "12m" || r.IP != "<none>" || r.Node != "<none>" {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func TestAge(t *testing.T) {
	p := load(t, podYAML(one(""))).Pod
	if got := printers.PodRow(p, nil, testmanifest.Noon).Age; got != "<unknown>" {
		t.Errorf("without a time: %s", got)
	}
	if got := printers.PodRow(p, &pod.Status{StartTime: testmanifest.Noon.Add(-90 * time.Second)}, testmanifest.Noon).Age; got != "90s" {
		t.Errorf("by the status alone: %s", got)
	}
	for ago, want := range map[time.Duration]string{
		-time.Hour:           "0s", // the clock was set back
		0:                    "0s",
		119 * time.Second:    "119s",
		3 * time.Minute:      "3m",
		3*time.Hour + 1:      "3h",
		49 * time.Hour:       "2d1h",
		400 * 24 * time.Hour: "400d",
	} {
		p.CreationTimestamp = metav1.NewTime(testmanifest.Noon.Add(-ago))
		if got := printers.PodRow(p, nil, testmanifest.Noon).Age; got != want {
			t.Errorf("%v: %s, want %s", ago, got, want)
		}
	}
}
