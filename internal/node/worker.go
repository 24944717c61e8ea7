package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/report"
)

// worker carries out what one pod of the API server needs.
type worker struct {
	*Agent
	uid             types.UID
	namespace, name string
	wakeup          chan struct{}
	results         chan func() // of calls in goroutines of their own
	admitted, gone  bool        // guarded by Agent.mu; gone: nothing is left of the pod but its objects

	state    sync.Mutex
	pod      *corev1.Pod // as the API server has it, or had it; never changed in place
	orphaned bool        // the API server does not have it any longer

	// The following belong to the worker's goroutine.
	recorded   *corev1.Pod       // as it was recorded; nil if it was not
	rejected   *rejection        // why the node does not admit it
	failed     *corev1.PodStatus // why it does not start
	applied    *corev1.Pod       // the manifest that the engine has, or has refused for the running pod
	stopping   *int64            // the grace period of the stop in progress
	stops      int               // calls of Stop in progress
	sent       map[string]int32  // counts of the events that the API server has
	answered   answer
	conditions map[corev1.PodConditionType]corev1.ConditionStatus
	refresh    time.Time // when the tokens have to be requested again; zero if it has none, or is not known

	apply, stop, removal, report, tokens task
	problem                              string // the last error that was printed
}

func newWorker(a *Agent, p *corev1.Pod, recorded bool) *worker {
	w := &worker{
		Agent: a, uid: p.UID, namespace: p.Namespace, name: p.Name, pod: p,
		wakeup: make(chan struct{}, 1), results: make(chan func()),
		sent: map[string]int32{}, conditions: map[corev1.PodConditionType]corev1.ConditionStatus{},
	}
	if recorded {
		w.recorded = p
	}
	return w
}

// wake makes the worker look again.
func (w *worker) wake() {
	select {
	case w.wakeup <- struct{}{}:
	default: // it has not looked since the last call
	}
}

// current returns the pod as the API server has it.
func (w *worker) current() *corev1.Pod {
	w.state.Lock()
	defer w.state.Unlock()
	return w.pod
}

// update replaces the pod by a state that is not older.
func (w *worker) update(p *corev1.Pod) {
	w.state.Lock()
	if !older(p, w.pod) {
		w.pod, w.orphaned = p, false
	}
	w.state.Unlock()
	w.wake()
}

// older reports whether a state of an object precedes another one (KEP-5504: resource versions are comparable).
func older(a, b *corev1.Pod) bool {
	x, xerr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yerr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xerr == nil && yerr == nil && x < y
}

// orphan marks the pod as one that the API server does not have any longer.
func (w *worker) orphan() {
	w.state.Lock()
	w.orphaned = true
	w.state.Unlock()
	w.wake()
}

// task is a call in a goroutine of its own. One that has failed is made again after a back-off.
type task struct {
	running bool
	cancel  context.CancelFunc
	failed  int // times in succession
	next    time.Time
}

func (t *task) due() bool { return !t.running && !time.Now().Before(t.next) }

// fail sets when the call that has failed is made again: after initial, and after twice as long for each further
// failure in succession, up to maximum.
func (t *task) fail(initial, maximum time.Duration) {
	t.next = time.Now().Add(min(initial<<min(t.failed, 10), maximum))
	t.failed++
}

const (
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// The kubelet's back-off of pods that cannot be started (pkg/kubelet: MaxContainerBackOff).
	firstStart, lastStart = 10 * time.Second, 5 * time.Minute
)

// begin calls do in a goroutine of its own, and then done in the worker's goroutine.
func (w *worker) begin(ctx context.Context, t *task, do func(context.Context) error, done func(error)) {
	call, cancel := context.WithCancel(ctx)
	t.running, t.cancel = true, cancel
	w.running.Go(func() {
		err := do(call)
		cancel()
		select {
		case w.results <- func() { t.running = false; done(err) }:
		case <-ctx.Done():
		}
	})
}

// retried returns the end of a call that is made again when it has failed.
func (w *worker) retried(t *task) func(error) {
	return func(err error) {
		if err == nil {
			t.failed, t.next = 0, time.Time{}
			return
		}
		t.fail(firstRetry, lastRetry)
		w.print(err)
	}
}

// print prints an error that differs from the last one.
func (w *worker) print(err error) {
	if text := err.Error(); w.problem != text {
		w.problem = text
		report.Print(w.ErrOut, fmt.Errorf("pod %s/%s: %w", w.namespace, w.name, err))
	}
}

// run works until the pod is gone or ctx ends.
func (w *worker) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends calls whose results nothing receives
	for {
		gone, err := w.step(ctx)
		if gone {
			return
		}
		wait := resync
		if err != nil {
			w.print(err)
			wait = firstRetry
		}
		for _, t := range []*task{&w.apply, &w.stop, &w.removal, &w.report, &w.tokens} {
			if left := time.Until(t.next); !t.running && !t.next.IsZero() && left > 0 {
				wait = min(wait, left)
			}
		}
		if !w.refresh.IsZero() {
			wait = min(wait, max(time.Until(w.refresh), 0))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.wakeup:
		case done := <-w.results:
			done()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// resync is the longest time between two looks at a pod: one killed with its monitor changes no file.
const resync = 10 * time.Second

// step looks at the pod and begins what is due.
func (w *worker) step(ctx context.Context) (gone bool, err error) {
	w.state.Lock()
	p, orphaned := w.pod, w.orphaned
	w.state.Unlock()
	if err := w.record(p); err != nil {
		return false, err
	}
	local, err := w.Engine.Find(w.namespace, w.name)
	if err != nil {
		return false, err
	}
	own := local != nil && local.UID == w.uid
	ending := orphaned || p.DeletionTimestamp != nil
	if !ending && !own && w.rejected == nil && !hasEnded(&p.Status) && !w.isAdmitted() {
		if w.rejected, err = w.admit(ctx, w, p); err != nil {
			return false, err
		}
	}
	st := w.statusOf(p, local)
	next := decide(&view{
		pod: p, orphaned: orphaned, rejected: w.rejected != nil, local: local, stopping: w.stopping,
		applied: sameManifest(w.applied, manifestOf(p)), applying: w.apply.running, reported: w.isReported(st, &p.Status),
	})
	if next == forget {
		err := w.forget(ctx, w)
		return err == nil, err
	}
	w.carryOut(ctx, next, p, local)
	if !orphaned {
		w.beginReport(ctx, p, st, local)
	}
	if own && local.Alive && !ending {
		w.keepRunning(ctx, p)
	}
	return false, nil
}

// carryOut begins the next step, unless its last attempt has failed just now.
func (w *worker) carryOut(ctx context.Context, next action, p *corev1.Pod, local *Local) {
	switch {
	case next == apply && w.apply.due():
		w.beginApply(ctx, p, manifestOf(p), local != nil && local.Alive)
	case next == cancelApply:
		w.apply.cancel()
	case next == waitForEnd:
		w.reportConflict(p)
	case next == stop && (w.stopping != nil || w.stop.due()):
		w.beginStop(ctx, gracePeriod(p))
	case next == remove && w.removal.due():
		w.begin(ctx, &w.removal, func(ctx context.Context) error { return w.Engine.Remove(ctx, w.namespace, w.name) }, w.retried(&w.removal))
	case next == finish && w.removal.due():
		w.begin(ctx, &w.removal, w.deletePod, w.retried(&w.removal))
	}
}

func (w *worker) isAdmitted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.admitted
}

// record records the pod before it starts, and when a change must survive the agent.
func (w *worker) record(p *corev1.Pod) error {
	if r := w.recorded; r != nil && sameManifest(r, p) && r.DeletionTimestamp.Equal(p.DeletionTimestamp) && r.Status.Phase == p.Status.Phase {
		return nil
	}
	if err := w.Records.Put(p); err != nil {
		return err
	}
	w.recorded = p
	return nil
}

// sameManifest reports whether two states of a pod have the same manifest.
func sameManifest(a, b *corev1.Pod) bool {
	return a != nil && reflect.DeepEqual(a.Labels, b.Labels) && reflect.DeepEqual(a.Annotations, b.Annotations) && reflect.DeepEqual(a.Spec, b.Spec)
}

// beginApply starts the pod, or changes the running one.
func (w *worker) beginApply(ctx context.Context, p, manifest *corev1.Pod, runs bool) {
	var refresh time.Time
	do := func(ctx context.Context) (err error) {
		if err := w.objects.hold(ctx, w, referencesOf(p)); err != nil {
			return err
		}
		if err := w.services.wait(ctx); err != nil {
			return err
		}
		if !runs && !p.Spec.HostNetwork {
			if err := w.Node.Network.await(ctx); err != nil {
				return err
			}
		}
		if !runs {
			refresh, err = w.requestTokens(ctx, p)
			if status := apierrors.APIStatus(nil); err != nil && (!errors.As(err, &status) || w.isOffline()) {
				err = w.putEmptyTokens(ctx, p)
			}
			if err != nil {
				return err
			}
		}
		return w.Engine.Apply(ctx, w.uid, manifest)
	}
	w.begin(ctx, &w.apply, do, func(err error) {
		if err == nil || runs { // a change that the engine refuses is not tried again
			w.applied = manifest
		}
		if err == nil {
			w.failed, w.refresh, w.apply.failed, w.apply.next = nil, refresh, 0, time.Time{}
			return
		}
		w.print(err)
		w.event(ctx, p, "Failed", err) // kubelet: pkg/kubelet/events, FailedToCreateContainer
		if !runs {
			w.failed = waitingStatus(p, "CreateContainerConfigError", err.Error())
			w.apply.fail(firstStart, lastStart)
		}
	})
}

// reportConflict reports a pod of this host that has the pod's name and is not from the cluster. One that is from the
// cluster will end by itself.
func (w *worker) reportConflict(p *corev1.Pod) {
	for _, o := range w.List() {
		if o.UID != w.uid && o.Namespace == w.namespace && o.Name == w.name {
			return
		}
	}
	err := report.New(report.Failure, fmt.Sprintf("podrun down %s -n %s removes the other one", w.name, w.namespace), "pod %s/%s of this host is not from the cluster and has the same name", w.namespace, w.name)
	w.failed = waitingStatus(p, "CreateContainerConfigError", err.Error())
	w.print(err)
}

// beginStop stops the pod. A stop in progress gets the shorter grace period.
func (w *worker) beginStop(ctx context.Context, grace int64) {
	w.stopping = &grace
	w.stops++
	var one task
	w.begin(ctx, &one, func(ctx context.Context) error { return w.Engine.Stop(ctx, w.namespace, w.name, grace) }, func(err error) {
		if w.stops--; w.stops == 0 {
			w.stopping = nil
			w.retried(&w.stop)(err)
		}
	})
}

// keepRunning does for a running pod what does not change its processes: it renews tokens, and passes conditions on
// that others have set.
func (w *worker) keepRunning(ctx context.Context, p *corev1.Pod) {
	if w.tokens.due() && !time.Now().Before(w.refresh) && len(tokensOf(p.DeepCopy())) > 0 {
		var refresh time.Time
		do := func(ctx context.Context) (err error) {
			refresh, err = w.requestTokens(ctx, p)
			return err
		}
		w.begin(ctx, &w.tokens, do, func(err error) {
			if err == nil {
				w.refresh = refresh
			}
			w.retried(&w.tokens)(err)
		})
	}
	for _, gate := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type != gate.ConditionType || w.conditions[c.Type] == c.Status {
				continue
			}
			if err := w.Engine.SetCondition(ctx, w.namespace, w.name, &c); err != nil {
				w.print(err)
				continue
			}
			w.conditions[c.Type] = c.Status
		}
	}
}
