package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// recorder is a kernel that counts how often it is told what is known.
type recorder struct {
	*fakeKernel
	records, probes int
}

func (r *recorder) Record(*lifecycle.Observed) { r.records++ }

func (r *recorder) Do(a lifecycle.Action) {
	if a.Kind != lifecycle.RunProbe {
		r.fakeKernel.Do(a)
		return
	}
	r.probes++
	r.emit(lifecycle.Event{Kind: lifecycle.Probed, Container: a.Container, Attempt: a.Attempt, Probe: a.Probe, Outcome: lifecycle.Success})
}

// That probes were asked and have answered as before is not put on record: however long
// they go on, nothing is written.
func TestProbesThatTellNothingNewAreNotPutOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, probes := recorded(time.Minute)
		long, more := recorded(time.Hour)
		if probes < 20*50 || more < 20*3500 || max(short, long) > 300 {
			t.Errorf("a minute: %d probes, %d records; an hour: %d probes, %d records", probes, short, more, long)
		}
	})
}

// recorded runs 20 containers, which are probed every second, for a time.
func recorded(d time.Duration) (records, probes int) {
	names, behave := []string{}, map[string]behaviour{}
	for i := range 20 {
		names = append(names, string(rune('a'+i)))
		behave[names[i]] = behaviour{after: d}
	}
	plan := testPlan(pod.RestartNever, nil, names)
	for i := range plan.Containers {
		plan.Containers[i].Readiness = &pod.Probe{Handler: pod.Handler{Exec: []string{"true"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	}
	k := &recorder{fakeKernel: newFakeKernel(behave)}
	l := loop{plan: plan, kernel: k, now: k.now, publish: func(*pod.Status) {}}
	l.run()
	return k.records, k.probes
}
