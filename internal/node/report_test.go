package node

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/node/kubeapi"
	"github.com/podrun/podrun/internal/node/nodetest"
)

// TestStatusIsSentAgain: a status is sent until the API server takes it.
func TestStatusIsSentAgain(t *testing.T) {
	b := newBed(t)
	var mu sync.Mutex
	refused := 0
	b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/status") || !strings.Contains(r.URL.Path, "/pods/") || refused == 2 {
			return false
		}
		refused++
		http.Error(w, "overloaded", []int{http.StatusInternalServerError, http.StatusConflict}[refused-1])
		return true
	})
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	if refused != 2 {
		t.Errorf("%d statuses were refused", refused)
	}
}

// TestLateAnswer: the API server's answer to a status comes after the watch has reported that the pod was removed. The pod is
// removed from the host, too.
func TestLateAnswer(t *testing.T) {
	b := newBed(t)
	var answered atomic.Bool
	b.engine.removed = func(string) error {
		if !answered.Load() {
			return errors.New("it is in use")
		}
		return nil
	}
	b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
		stored := b.Pod("web")
		if !strings.HasSuffix(r.URL.Path, "/pods/web/status") || stored == nil {
			return false
		}
		if err := json.NewDecoder(r.Body).Decode(stored); err != nil {
			t.Error(err)
		}
		if stored.Status.Phase != corev1.PodRunning {
			return false
		}
		b.Remove(kubeapi.PodPath("default", "web"))
		waitFor(t, "the pod is stopped", func() bool { return strings.Contains(b.engine.calls(), "stop web") })
		nodetest.Respond(w, http.StatusOK, stored)
		answered.Store(true)
		return true
	})
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	waitFor(t, "the pod is removed", func() bool { return b.engine.calls() == "start web, stop web in 7, remove web" })
	waitFor(t, "its record is gone", func() bool { list, err := b.records.Load(); return err == nil && len(list) == 0 })
}

// TestChangeIsReportedLater: a container that is replaced at once does not appear as not ready.
func TestChangeIsReportedLater(t *testing.T) {
	b := newBed(t)
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	b.waitRunning(t, "web")
	changed := b.Pod("web")
	changed.Spec.Containers[0].Image = "localhost/other:1"
	before := time.Now()
	b.PutPod(t, changed)
	waitFor(t, "the change is applied", func() bool { return b.engine.image("web") == "localhost/other:1" })
	b.engine.restart("web")
	waitFor(t, "the restart is reported", func() bool { return b.Pod("web").Status.ContainerStatuses[0].RestartCount == 1 })
	if after := time.Since(before); after < relistPeriod {
		t.Errorf("the restart was reported after %v", after)
	}
}

// TestObservedGeneration: a change counts as observed when it is applied or refused.
func TestObservedGeneration(t *testing.T) {
	old, changed := nodetest.NewPod("web", uid1), nodetest.NewPod("web", uid1)
	old.Generation, changed.Generation = 1, 2
	changed.Spec.Containers[0].Image = "localhost/other:1"
	deleted := changed.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		p, applied *corev1.Pod
		local      int64 // generation
		alive      bool
		want       int64
	}{
		"it is being applied":                {changed, old, 1, true, 1},
		"it is applied":                      {changed, changed, 2, true, 2},
		"it is refused":                      {changed, changed, 1, true, 2},
		"the agent has started":              {changed, nil, 1, true, 1},
		"the generation here is not known":   {changed, old, 0, true, 2},
		"the pod has ended":                  {changed, old, 1, false, 2},
		"the pod is to stop":                 {deleted, old, 1, true, 2},
		"the generation here is a later one": {old, nil, 2, true, 1},
	} {
		a := &Agent{Node: &Registration{}}
		w := &worker{agent: a, uid: uid1}
		if c.applied != nil {
			w.applied = a.manifestOf(c.applied)
		}
		local := &Local{UID: uid1, Alive: c.alive, Ended: !c.alive, Pod: &corev1.Pod{Status: corev1.PodStatus{
			ObservedGeneration: c.local, Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady}},
		}}}
		st := w.reportedStatus(c.p, local)
		if st.ObservedGeneration != c.want || st.Conditions[0].ObservedGeneration != c.want {
			t.Errorf("%s: generation %d is observed, of Ready %d; want %d", name, st.ObservedGeneration, st.Conditions[0].ObservedGeneration, c.want)
		}
	}
}

// TestStatusOfMissingPod: while the watch has not reported that a pod was removed, its status is sent at most once a second.
func TestStatusOfMissingPod(t *testing.T) {
	b := newBed(t)
	times := make(chan time.Time, 100)
	b.SetHook(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods/web/status") {
			return false
		}
		times <- time.Now()
		http.NotFound(w, r)
		return true
	})
	b.run(t)
	b.PutPod(t, nodetest.NewPod("web", uid1))
	if first, second := <-times, <-times; second.Sub(first) < firstRetry {
		t.Errorf("the status was sent again after %v", second.Sub(first))
	}
}

// TestDeletedBeforeStart: a pod that is deleted before anything of it was reported ends with statuses of its containers.
func TestDeletedBeforeStart(t *testing.T) {
	p := nodetest.NewPod("web", uid1)
	p.Spec.InitContainers = []corev1.Container{{Name: "first"}}
	p.DeletionTimestamp = new(metav1.Now())
	w := &worker{agent: &Agent{Node: &Registration{}}, uid: uid1}
	st := w.statusOf(p, nil)
	if st.Phase != corev1.PodFailed || len(st.InitContainerStatuses) != 1 || len(st.ContainerStatuses) != 1 || st.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("the status is %+v", st)
	}
}
