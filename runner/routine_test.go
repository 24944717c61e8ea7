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

// That probes were asked and have answered as before is put on record once a second, and
// not for each of them.
func TestProbesThatTellNothingNewAreNotEachPutOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names, behave := []string{}, map[string]behaviour{}
		for i := range 20 {
			names = append(names, string(rune('a'+i)))
			behave[names[i]] = behaviour{after: time.Minute}
		}
		plan := testPlan(pod.RestartNever, nil, names)
		for i := range plan.Containers {
			plan.Containers[i].Readiness = &pod.Probe{Handler: pod.Handler{Exec: []string{"true"}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
		}
		k := &recorder{fakeKernel: newFakeKernel(behave)}
		l := loop{plan: plan, kernel: k, now: k.now, publish: func(*pod.Status) {}}
		l.run()
		if k.probes < 20*50 || k.records > 60*3+100 {
			t.Errorf("%d probes, %d records", k.probes, k.records)
		}
	})
}
