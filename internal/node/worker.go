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
	agent           *Agent
	uid             types.UID
	namespace, name string
	known           time.Time // since when the agent knows the pod
	wakeup          chan struct{}
	results         chan func() // of calls in goroutines of their own
	admitted, gone  bool        // guarded by Agent.mu; gone: nothing is left of the pod but its objects

	podMu    sync.Mutex
	pod      *corev1.Pod // as the API server has it, or had it; never changed in place
	orphaned bool        // the API server does not have it any longer

	// The following belong to the worker's goroutine.
	recorded     *corev1.Pod       // as it was recorded; nil if it was not
	rejected     *rejection        // why the node does not admit it
	startFailure *corev1.PodStatus // why it does not start; nil if it may
	applied      *corev1.Pod       // the manifest that the engine has, or has refused for the running pod
	refused      RefusedContainers // of applied
	stopping     *int64            // the grace period of the stop in progress
	stops        int               // calls of Stop in progress
	counted      *corev1.PodStatus // the last status whose changes were counted
	sent         map[string]int32  // counts of the events that the API server has
	answered     answer
	conditions   map[corev1.PodConditionType]corev1.ConditionStatus
	refusals     int       // of requests for the start, in succession
	refresh      time.Time // when the tokens have to be requested again; zero if there are none, or if that is not known

	quiet time.Time // until then nothing is reported

	applyTask, stopTask, removalTask, reportTask, tokensTask task
	problem                                                  report.LastError
}

func newWorker(a *Agent, p *corev1.Pod, recorded bool) *worker {
	w := &worker{
		agent: a, uid: p.UID, namespace: p.Namespace, name: p.Name, pod: p, known: time.Now(), counted: &p.Status,
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
	default: // a wake-up is pending already
	}
}

// current returns the pod as the API server has it.
func (w *worker) current() *corev1.Pod {
	w.podMu.Lock()
	defer w.podMu.Unlock()
	return w.pod
}

// update replaces the pod by a state that is not older. Only a watched one means that the API server has the pod: an answer
// may come after the watch has reported that the pod was removed.
func (w *worker) update(p *corev1.Pod, watched bool) {
	w.podMu.Lock()
	if !older(p, w.pod) {
		w.pod, w.orphaned = p, w.orphaned && !watched
	}
	w.podMu.Unlock()
	w.wake()
}

// older reports whether a state of an object precedes another one (KEP-5504: resource versions are comparable).
func older(a, b *corev1.Pod) bool {
	x, xerr := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, yerr := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return xerr == nil && yerr == nil && x < y
}

// orphan records that the API server does not have the pod any longer.
func (w *worker) orphan() {
	w.podMu.Lock()
	w.orphaned = true
	w.podMu.Unlock()
	w.wake()
}

// task is a call in a goroutine of its own. A call that has failed is made again after a back-off.
type task struct {
	running  bool
	cancel   context.CancelFunc
	failures int // in succession
	next     time.Time
}

func (t *task) due() bool { return !t.running && !time.Now().Before(t.next) }

// fail sets when a call that has failed is made again: after initial, and after twice the previous time for each
// further failure in succession, up to maximum.
func (t *task) fail(initial, maximum time.Duration) {
	t.next = time.Now().Add(min(initial<<min(t.failures, 10), maximum))
	t.failures++
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
	w.agent.running.Go(func() {
		err := do(call)
		cancel()
		select {
		case w.results <- func() { t.running = false; done(err) }:
		case <-ctx.Done():
		}
	})
}

// beginRetried begins a call whose result only decides whether it is made again, after a back-off.
func (w *worker) beginRetried(ctx context.Context, t *task, do func(context.Context) error) {
	w.begin(ctx, t, do, func(err error) { w.finishTask(t, err) })
}

// finishTask handles the result of a call. A call that has failed is made again.
func (w *worker) finishTask(t *task, err error) {
	if err == nil {
		t.failures, t.next = 0, time.Time{}
		return
	}
	t.fail(firstRetry, lastRetry)
	w.print(err)
}

// print prints an error that differs from the last one.
func (w *worker) print(err error) {
	w.problem.Print(w.agent.ErrOut, fmt.Errorf("pod %s/%s: %w", w.namespace, w.name, err))
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
		pause := resync
		if err != nil {
			w.print(err)
			pause = firstRetry
		}
		for _, t := range []*task{&w.applyTask, &w.stopTask, &w.removalTask, &w.reportTask, &w.tokensTask} {
			if left := time.Until(t.next); !t.running && !t.next.IsZero() && left > 0 {
				pause = min(pause, left)
			}
		}
		if left := time.Until(w.quiet); left > 0 {
			pause = min(pause, left)
		}
		if !w.refresh.IsZero() {
			pause = min(pause, max(time.Until(w.refresh), 0))
		}
		timer := time.NewTimer(pause)
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

// resync is the longest time between two looks at a pod: the death of a pod together with its monitor changes no
// file.
const resync = 10 * time.Second

// step looks at the pod and begins what is due.
func (w *worker) step(ctx context.Context) (gone bool, err error) {
	w.podMu.Lock()
	p, orphaned := w.pod, w.orphaned
	w.podMu.Unlock()
	if err := w.record(p); err != nil {
		return false, err
	}
	local, err := w.agent.Engine.Find(w.namespace, w.name)
	if err != nil {
		return false, err
	}
	isCurrent := local != nil && local.UID == w.uid
	ending := orphaned || p.DeletionTimestamp != nil
	if !ending && !isCurrent && w.rejected == nil && !hasEnded(&p.Status) && !w.isAdmitted() {
		if w.rejected, err = w.agent.admit(ctx, w, p); err != nil {
			return false, err
		}
	}
	st := w.statusOf(p, local)
	w.agent.counter.count(time.Since(w.known), w.counted, st)
	w.counted = st
	next := decide(&view{
		pod: p, orphaned: orphaned, rejected: w.rejected != nil, local: local, stopping: w.stopping,
		applied: sameManifest(w.applied, w.agent.manifestOf(p)), applying: w.applyTask.running, reported: w.isReported(st, &p.Status),
	})
	if next == actForget {
		err := w.agent.forget(ctx, w)
		return err == nil, err
	}
	w.carryOut(ctx, next, p, local)
	if !orphaned {
		w.beginReport(ctx, p, st, local)
	}
	if isCurrent && local.Alive && !ending && !w.applyTask.running { // a start requests the tokens
		w.maintain(ctx, p)
	}
	return false, nil
}

// carryOut begins the next step, unless it has failed and its back-off has not passed.
func (w *worker) carryOut(ctx context.Context, next action, p *corev1.Pod, local *Local) {
	switch {
	case next == actApply && w.applyTask.due():
		w.beginApply(ctx, p, w.agent.manifestOf(p), local != nil && local.Alive)
	case next == actCancelApply:
		w.applyTask.cancel()
	case next == actWaitForEnd:
		w.reportConflict(p)
	case next == actStop && (w.stopping != nil || w.stopTask.due()):
		w.beginStop(ctx, gracePeriod(p))
	case next == actRemove && w.removalTask.due():
		w.beginRetried(ctx, &w.removalTask, func(ctx context.Context) error { return w.agent.Engine.Remove(ctx, w.namespace, w.name) })
	case next == actDeleteFromAPI && w.removalTask.due():
		w.beginRetried(ctx, &w.removalTask, w.deletePod)
	}
}

func (w *worker) isAdmitted() bool {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	return w.admitted
}

// record records the pod before it starts, and again when it has changed in what the next agent needs.
func (w *worker) record(p *corev1.Pod) error {
	if r := w.recorded; r != nil && sameManifest(r, p) && r.DeletionTimestamp.Equal(p.DeletionTimestamp) && r.Status.Phase == p.Status.Phase {
		return nil
	}
	if err := w.agent.Records.Put(p); err != nil {
		return err
	}
	w.recorded = p
	return nil
}

// sameManifest reports whether two states of a pod have the same manifest.
func sameManifest(a, b *corev1.Pod) bool {
	return a != nil && reflect.DeepEqual(a.Labels, b.Labels) && reflect.DeepEqual(a.Annotations, b.Annotations) && reflect.DeepEqual(a.Spec, b.Spec)
}

// apply starts the pod, or changes the running one. refresh is when its tokens have to be requested again.
func (w *worker) apply(ctx context.Context, p, manifest *corev1.Pod, runs bool) (refresh time.Time, err error) {
	if err := checkVolumes(manifest); err != nil {
		return refresh, err
	}
	if err := w.agent.objects.hold(ctx, w, referencesOf(p)); err != nil {
		return refresh, err
	}
	if err := w.agent.services.wait(ctx); err != nil {
		return refresh, err
	}
	if !runs && !p.Spec.HostNetwork {
		if err := w.agent.Node.Network.await(ctx); err != nil {
			return refresh, err
		}
	}
	if !runs {
		if err := w.storeClaims(ctx, p); err != nil {
			return refresh, err
		}
		refresh, err = w.requestTokens(ctx, p)
		if status := apierrors.APIStatus(nil); err != nil && (!errors.As(err, &status) || w.agent.isOffline()) {
			err = w.putEmptyTokens(ctx, p)
		}
		if err != nil {
			return refresh, err
		}
	}
	return refresh, w.agent.Engine.Apply(ctx, w.uid, manifest)
}

// relistPeriod is how often the kubelet looks at containers (pkg/kubelet/kubelet.go, genericPlegRelistPeriod).
const relistPeriod = time.Second

// beginApply begins apply. As in the kubelet, a container that a change replaces at once does not appear as not ready.
func (w *worker) beginApply(ctx context.Context, p, manifest *corev1.Pod, runs bool) {
	if runs && w.applied != nil && !reflect.DeepEqual(w.applied.Spec, manifest.Spec) {
		w.quiet = time.Now().Add(relistPeriod)
	}
	var refresh time.Time
	do := func(ctx context.Context) (err error) {
		refresh, err = w.apply(ctx, p, manifest, runs)
		return err
	}
	w.begin(ctx, &w.applyTask, do, func(err error) {
		if err == nil || runs { // a change that the engine refuses is not tried again
			w.applied, w.refused = manifest, nil
			errors.As(err, &w.refused)
		}
		if err == nil {
			w.startFailure, w.refresh, w.refusals, w.applyTask.failures, w.applyTask.next = nil, refresh, 0, 0, time.Time{}
			return
		}
		switch {
		case runs:
		case isRefusal(err) && w.refusals < len(refusalPauses):
			w.applyTask.next = time.Now().Add(refusalPauses[w.refusals])
			w.refusals++
		default:
			w.applyTask.fail(firstStart, lastStart)
		}
		if !isRefusal(err) || w.refusals >= reportedRefusal {
			w.reportFailure(ctx, p, err, runs)
		}
	})
}

// refusalPauses are the times after which a request that the API server has refused is made again. Its authorizer may
// learn later than its watches that the pod is bound to this node (the kubelet, too, retries within a second:
// pkg/volume/util/nestedpendingoperations, from 500 ms).
var refusalPauses = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
}

// reportedRefusal is the number of the first refusal that is reported.
const reportedRefusal = 3

// isRefusal reports whether the API server's answer may be another one when it has learned of the pod.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// reportFailure reports why a pod does not start, or why the running one is not changed.
func (w *worker) reportFailure(ctx context.Context, p *corev1.Pod, err error, runs bool) {
	w.print(err)
	reason := "Failed" // kubelet: pkg/kubelet/events, FailedToCreateContainer
	if errors.As(err, new(*volumeError)) {
		reason = "FailedMount"
	}
	w.event(ctx, p, reason, err)
	w.startFailure = nil
	if !runs && reason == "Failed" { // the kubelet reports volumes by events only
		w.startFailure = waitingStatus(p, "CreateContainerConfigError", err.Error())
	}
}

// reportConflict reports a pod of this host that has the pod's name and is not from the cluster. If the other pod is
// from the cluster, it will end by itself.
func (w *worker) reportConflict(p *corev1.Pod) {
	for _, o := range w.agent.List() {
		if o.UID != w.uid && o.Namespace == w.namespace && o.Name == w.name {
			return
		}
	}
	err := report.New(report.Failure, fmt.Sprintf("podrun down %s -n %s removes the other one", w.name, w.namespace), "pod %s/%s of this host is not from the cluster and has the same name", w.namespace, w.name)
	w.startFailure = waitingStatus(p, "CreateContainerConfigError", err.Error())
	w.print(err)
}

// beginStop stops the pod. It is called during a stop, too, to shorten the grace period.
func (w *worker) beginStop(ctx context.Context, grace int64) {
	w.stopping = &grace
	w.stops++
	var next task
	do := func(ctx context.Context) error {
		if grace > 0 {
			w.agent.services.withdraw(ctx, types.NamespacedName{Namespace: w.namespace, Name: w.name}, time.Duration(grace)*time.Second)
		}
		return w.agent.Engine.Stop(ctx, w.namespace, w.name, grace)
	}
	w.begin(ctx, &next, do, func(err error) {
		if w.stops--; w.stops == 0 {
			w.stopping = nil
			w.finishTask(&w.stopTask, err)
		}
	})
}

// maintain renews the tokens of a running pod, and passes on the conditions that components of the cluster have set.
func (w *worker) maintain(ctx context.Context, p *corev1.Pod) {
	if w.tokensTask.due() && !time.Now().Before(w.refresh) && len(tokensOf(p.DeepCopy())) > 0 {
		var refresh time.Time
		do := func(ctx context.Context) (err error) {
			refresh, err = w.requestTokens(ctx, p)
			return err
		}
		w.begin(ctx, &w.tokensTask, do, func(err error) {
			if err == nil {
				w.refresh = refresh
			}
			w.finishTask(&w.tokensTask, err)
		})
	}
	for _, gate := range p.Spec.ReadinessGates {
		for _, c := range p.Status.Conditions {
			if c.Type != gate.ConditionType || w.conditions[c.Type] == c.Status {
				continue
			}
			if err := w.agent.Engine.SetCondition(ctx, w.namespace, w.name, &c); err != nil {
				w.print(err)
				continue
			}
			w.conditions[c.Type] = c.Status
		}
	}
}
