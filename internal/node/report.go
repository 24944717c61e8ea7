package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// statusOf returns the status that the API server should have of a pod. A pod that is being deleted, and of which
// nothing runs, has ended.
func (w *worker) statusOf(p *corev1.Pod, local *Local) *corev1.PodStatus {
	st := w.reportedStatus(p, local)
	if isCurrent := local != nil && local.UID == w.uid; p.DeletionTimestamp != nil && !w.applyTask.running && !(isCurrent && local.Alive) {
		st = endedStatus(st)
	}
	return st
}

func (w *worker) reportedStatus(p *corev1.Pod, local *Local) *corev1.PodStatus {
	addresses := w.agent.Node.Addresses
	startTime := p.Status.StartTime
	if startTime == nil {
		startTime = new(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	isCurrent := local != nil && local.UID == w.uid
	switch {
	case isCurrent && !local.Alive && !local.Ended && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning:
		return &p.Status // its processes are lost: it is resumed
	case isCurrent && (local.Alive || local.Ended || p.DeletionTimestamp != nil):
		p = w.observed(p, local)
		return mergeStatus(p, w.withRefused(w.agent.Node.Network.withClusterIPs(&local.Pod.Status)), addresses)
	case hasEnded(&p.Status), p.DeletionTimestamp != nil && len(p.Status.ContainerStatuses) > 0:
		return &p.Status
	case w.rejected != nil:
		st := &corev1.PodStatus{Phase: corev1.PodFailed, Reason: w.rejected.reason, Message: "Pod was rejected: " + w.rejected.message, StartTime: startTime}
		return mergeStatus(p, st, addresses)
	case w.startFailure != nil:
		w.startFailure.StartTime = startTime
		return mergeStatus(p, w.startFailure, addresses)
	}
	reason := "ContainerCreating"
	if len(p.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	st := waitingStatus(p, reason, "")
	st.StartTime = startTime
	return mergeStatus(p, st, addresses)
}

// observed returns p with the generation that the pod on this host has, as long as a change is not applied: its status is not
// about the change yet. A change that the engine refuses counts as applied.
func (w *worker) observed(p *corev1.Pod, local *Local) *corev1.Pod {
	was := local.Pod.Status.ObservedGeneration
	if !local.Alive || p.DeletionTimestamp != nil || was == 0 || was >= p.Generation || sameManifest(w.applied, w.agent.manifestOf(p)) {
		return p
	}
	old := *p
	old.Generation = was
	return &old
}

// withRefused adds the ephemeral containers that the engine has refused to the status of the pod on this host.
func (w *worker) withRefused(st *corev1.PodStatus) *corev1.PodStatus {
	if len(w.refused) == 0 {
		return st
	}
	st = st.DeepCopy()
	for _, c := range w.applied.Spec.EphemeralContainers {
		if err := w.refused[c.Name]; err != nil {
			waiting := &corev1.ContainerStateWaiting{Reason: "CreateContainerError", Message: err.Error()}
			st.EphemeralContainerStatuses = append(st.EphemeralContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: waiting}})
		}
	}
	return st
}

// equalStatus reports whether the API server would store the same for two statuses: its times are whole seconds.
func equalStatus(a, b *corev1.PodStatus) bool {
	return equality.Semantic.DeepEqual(normalize(a), normalize(b))
}

// normalize returns a status as the API server returns it.
func normalize(st *corev1.PodStatus) *corev1.PodStatus {
	text, err := json.Marshal(st)
	out := &corev1.PodStatus{}
	if err != nil || json.Unmarshal(text, out) != nil {
		return st
	}
	return out
}

// answer pairs a status that was sent with what the API server has stored of it: an older API server drops fields that
// it does not know.
type answer struct{ sent, stored *corev1.PodStatus }

// isReported reports whether has, the API server's status, is its version of st.
func (w *worker) isReported(st, has *corev1.PodStatus) bool {
	return equalStatus(st, has) || w.answered.sent != nil && equalStatus(st, w.answered.sent) && equalStatus(has, w.answered.stored)
}

// beginReport sends the status and the events that the API server does not have.
func (w *worker) beginReport(ctx context.Context, p *corev1.Pod, st *corev1.PodStatus, local *Local) {
	if !w.reportTask.due() || time.Now().Before(w.quiet) {
		return
	}
	var events []corev1.Event
	if local != nil && local.UID == w.uid {
		all, err := w.agent.Engine.Events(w.namespace, w.name)
		if err != nil {
			w.print(err)
		}
		for _, e := range all {
			if w.sent[e.Name] < e.Count {
				events = append(events, e)
			}
		}
	}
	sameStatus := w.isReported(st, &p.Status)
	if sameStatus && len(events) == 0 {
		return
	}
	var answered answer
	w.begin(ctx, &w.reportTask, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		if !sameStatus {
			if answered, err = w.sendStatus(ctx, p, st); err != nil {
				return fmt.Errorf("report its status: %w", err)
			}
		}
		for i := range events {
			if err := w.sendEvent(ctx, p, &events[i]); err != nil {
				return fmt.Errorf("report its events: %w", err)
			}
		}
		return nil
	}, func(err error) {
		if answered.sent != nil {
			w.answered = answered
		}
		if err == nil {
			for _, e := range events {
				w.sent[e.Name] = e.Count
			}
		}
		if errors.Is(err, errPodGone) { // the watch ends the worker
			w.reportTask.fail(firstRetry, lastRetry)
			return
		}
		w.finishTask(&w.reportTask, err)
		w.wake()
	})
}

// sendStatus replaces the pod's status, and returns the answer. If the pod has changed meanwhile, sendStatus reads it,
// and the worker compares again.
func (w *worker) sendStatus(ctx context.Context, p *corev1.Pod, st *corev1.PodStatus) (answered answer, err error) {
	next, has := p.DeepCopy(), &corev1.Pod{}
	next.Status = *st
	err = w.agent.Client.Update(ctx, kubeapi.PodPath(p.Namespace, p.Name, "status"), next, has)
	if err == nil {
		answered = answer{st, &has.Status}
	} else if apierrors.IsConflict(err) {
		err = w.agent.Client.Get(ctx, kubeapi.PodPath(p.Namespace, p.Name), has)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && has.UID != w.uid:
		return answered, errPodGone
	case err != nil:
		return answered, err
	}
	w.update(has, false)
	return answered, nil
}

// errPodGone means that the API server does not have the pod. The watch reports it, too.
var errPodGone = errors.New("the API server does not have the pod")

// component is the name of the node in events.
const component = "kubelet"

// sendEvent sends an event about a pod.
func (w *worker) sendEvent(ctx context.Context, p *corev1.Pod, e *corev1.Event) error {
	e.InvolvedObject.UID, e.InvolvedObject.ResourceVersion = p.UID, p.ResourceVersion
	return w.agent.sendEvent(ctx, e)
}

// sendEvent creates an event of the node, or counts it.
func (a *Agent) sendEvent(ctx context.Context, e *corev1.Event) error {
	e.Source = corev1.EventSource{Component: component, Host: a.Node.Name}
	e.ReportingController, e.ReportingInstance = component, a.Node.Name
	e.CreationTimestamp = metav1.Time{}
	path := "/api/v1/namespaces/" + url.PathEscape(e.Namespace) + "/events"
	err := a.Client.Create(ctx, path, e, nil)
	if apierrors.IsAlreadyExists(err) {
		var change []byte
		change, err = json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp, "message": e.Message})
		if err == nil {
			err = a.Client.Patch(ctx, path+"/"+url.PathEscape(e.Name), types.MergePatchType, change, nil)
		}
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // its namespace is being removed
		return nil
	}
	return err
}

// event sends a warning about a pod. It is lost if the API server does not answer.
func (w *worker) event(ctx context.Context, p *corev1.Pod, reason string, cause error) {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}
	w.agent.warn(ctx, about, p.Namespace, reason, cause.Error())
}

// warn sends a warning about an object, in a namespace. It is lost if the API server does not answer.
func (a *Agent) warn(ctx context.Context, about corev1.ObjectReference, namespace, reason, message string) {
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano()), Namespace: namespace},
		InvolvedObject: about,
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
	a.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		_ = a.sendEvent(ctx, e)
	})
}

// deletePod deletes the pod from the API server. Nothing of the pod is left on this host.
func (w *worker) deletePod(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	p := w.current()
	err := w.agent.Client.Delete(ctx, kubeapi.PodPath(p.Namespace, p.Name), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		w.orphan() // the watch may have missed it
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete it from the API server: %w", err)
	}
	return nil
}
