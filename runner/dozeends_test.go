package runner

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// A container that has closed its outputs does not keep its supervisor awake.
func TestSupervisorSleepsWithoutOutputs(t *testing.T) {
	testenv.NoLeaks(t)
	w, keeper := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000 >/dev/null 2>&1")}))
	w.sound(keeper)
	for deadline := time.Now().Add(patient); ; { // it may be on its way yet
		before := switches(t, keeper)
		idle(300 * time.Millisecond)
		after := switches(t, keeper)
		if after == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it wakes without cause: %s, then %s context switches", before, after)
		}
	}
}

// switches is how often a process has waited for something.
func switches(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "voluntary_ctxt_switches:\t")
	n, _, _ := strings.Cut(after, "\n")
	return n
}

// Without what it has left the supervisor cannot go on: the pod ends, whole.
func TestDamagedSleepEndsThePod(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"null":  func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"half": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, st.Size()/2)
		},
		"stranger": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(b), `"Name":"a"`, `"Name":"b"`)), 0o600)
		},
		"version": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(b), `"Version":1`, `"Version":99`)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			w, _ := drowsy(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")}))
			if err := damage(recordOf(w.place)); err != nil {
				t.Fatal(err)
			}
			w.dial().Close()
			w.final()
			if b, err := os.ReadFile(w.place.SupervisorLog()); err != nil || len(b) == 0 {
				t.Errorf("it does not say why: %v", err)
			}
		})
	}
}

// Times that come while the supervisor sleeps are kept: the back-off of a container
// and the pod's deadline.
func TestTimesAreKeptAsleep(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	plan := withFifos(t, newPlan(nil, []pod.Container{shell(l, "a", "exit 1"), shell(l, "b", obedient)}), "never")
	plan.RestartPolicy, plan.ActiveDeadlineSeconds, plan.GraceSeconds = pod.RestartAlways, 3, 0
	t.Setenv("PODRUN_DOZE_AFTER", "20ms")
	begun := time.Now()
	w := startWhole(t, plan)
	st := w.final()
	if took := time.Since(begun); took < 3*time.Second || took > patient {
		t.Errorf("the pod ended after %v", took)
	}
	if st.Reason != "DeadlineExceeded" || st.Phase != pod.Failed {
		t.Errorf("final status %+v", st)
	}
}

// Somebody who says nothing, or does not listen, does not keep the pod from ending.
func TestSilentClientsDoNotHoldThePod(t *testing.T) {
	testenv.NoLeaks(t)
	w, _ := drowsy(t, withFifos(t, newPlan(nil, []pod.Container{shell(layer(t), "a", obedient)}), "never"))
	w.release("never")
	_, keeper := w.processes()
	for range 3 {
		conn := w.dial()
		defer conn.Close()
	}
	conn := w.dial()
	defer conn.Close()
	if err := wire.WriteRequest(conn, wire.Request{Verb: wire.Watch}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(keeper, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.final()
}

// Without the first process of its shared PID namespace a pod gets another sandbox, asleep
// or awake, or has failed where its containers are never restarted, and says why.
func TestLostPauseEndsTheSandbox(t *testing.T) {
	for _, after := range []string{"20ms", "0"} {
		for _, policy := range []pod.RestartPolicy{pod.RestartAlways, pod.RestartNever} {
			t.Run(after+" "+string(policy), func(t *testing.T) {
				testenv.NoLeaks(t)
				plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000")})
				plan.ShareProcessNamespace, plan.RestartPolicy = true, policy
				t.Setenv("PODRUN_DOZE_AFTER", after)
				w := startWhole(t, plan)
				w.until(running)
				w.killPause(after != "0")
				if policy == pod.RestartNever {
					if st := w.final(); st.Phase != pod.Failed || st.Reason != "PodSandboxLost" {
						t.Errorf("final status %+v", st)
					}
					return
				}
				w.untilAgain("running in another sandbox", func(st *pod.Status) bool {
					return running(st) && st.Containers[0].RestartCount == 1
				})
			})
		}
	}
}

// killPause kills the first process of the pod's shared PID namespace, when the supervisor
// sleeps, if it is one that does.
func (w wholePod) killPause(dozes bool) {
	w.t.Helper()
	supervisor, keeper := w.processes()
	if dozes {
		w.sound(keeper)
	}
	for _, pid := range append(childrenOf(supervisor), childrenOf(keeper)...) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(b) == "podrun-pause\n" {
			kill9(w.t, pid)
			return
		}
	}
	w.t.Fatal("the pod has no first process")
}
