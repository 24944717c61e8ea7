package pull

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Pending is a pod that waits for its images, or for other pods. Until it starts, this process publishes its
// status and serves its control socket, as the supervisor does later.
type Pending struct {
	env      *cmdutil.Env
	pod      store.Pod
	waitsFor string                  // in words
	stop     context.CancelCauseFunc // ends the wait
	requests chan<- struct{}         // receives a request for an attempt now; see Loop
	over     chan struct{}           // closed when the pod no longer waits
	listener *net.UnixListener

	mu            sync.Mutex
	requestedStop *wire.StopRequest // the stop that a client has requested
	status        *pod.Status
	layers        []numberedLayer
	changes       int           // number of changes of layers
	changed       chan struct{} // closed when the status or a layer changes
}

// numberedLayer is a layer with the number of its latest change.
type numberedLayer struct {
	wire.LayerProgress
	change int
}

// ErrStopped is the cause of a pull that a client has ended.
var ErrStopped = errors.New("the pod was stopped")

// NewPending publishes that a pod waits for its images. The caller holds the pod's lock; stop ends the
// pull.
func NewPending(env *cmdutil.Env, p store.Pod, plan *pod.Plan, stop context.CancelCauseFunc, requests chan<- struct{}) (*Pending, error) {
	st := PendingStatus(plan)
	return newPending(env, p, "its images", &st, stop, requests)
}

// waitingForPods is the reason of a container whose pod waits for other pods.
const waitingForPods = "WaitingForPods"

// NewWaiting publishes that a pod waits for other pods. The caller holds the pod's lock; stop ends the wait.
func NewWaiting(env *cmdutil.Env, p store.Pod, plan *pod.Plan, after []podutil.StartAfter, stop context.CancelCauseFunc) (*Pending, error) {
	var pods []string
	for _, other := range after {
		pods = append(pods, fmt.Sprintf("pod %s (%s)", other.Pod, other.State))
	}
	waitsFor := strings.Join(pods, ", ")
	st := PendingStatus(plan)
	st.ImagePull = nil
	ForEachStatus(&st, func(c *pod.ContainerStatus) {
		c.State.Waiting = &pod.Waiting{Reason: waitingForPods, Message: "The pod starts after " + waitsFor}
	})
	return newPending(env, p, waitsFor, &st, stop, nil)
}

func newPending(env *cmdutil.Env, p store.Pod, waitsFor string, st *pod.Status, stop context.CancelCauseFunc, requests chan<- struct{}) (*Pending, error) {
	w := &Pending{env: env, pod: p, waitsFor: waitsFor, status: st, stop: stop, requests: requests, changed: make(chan struct{})}
	return w, w.Open()
}

// PendingStatus returns the status of a pod that waits for its images.
func PendingStatus(plan *pod.Plan) pod.Status {
	now := time.Now()
	st := pod.Status{Version: pod.StatusVersion, Phase: pod.Pending, StartTime: now, BootID: store.BootID(), ImagePull: &pod.ImagePull{}}
	first := pod.State{Waiting: &pod.Waiting{Reason: pod.FirstReason(len(plan.InitContainers))}}
	statuses := func(list []pod.Container) (all []pod.ContainerStatus) {
		for i := range list {
			all = append(all, pod.ContainerStatus{Name: list[i].Name, Image: list[i].Image, State: first})
		}
		return all
	}
	st.InitContainers, st.Containers = statuses(plan.InitContainers), statuses(plan.Containers)
	st.Conditions = lifecycle.PendingConditions(plan, now)
	return st
}

// Open serves the pod's control socket.
func (w *Pending) Open() (err error) {
	if err := w.pod.WriteStatus(w.status); err != nil {
		return err
	}
	if w.listener, err = w.pod.Listen(); err != nil {
		return err
	}
	w.over = make(chan struct{})
	go func(l *net.UnixListener, over <-chan struct{}) {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return // the listener is closed
			}
			go w.answer(conn, over)
		}
	}(w.listener, w.over)
	return nil
}

// Close ends what Open has started. Clients connect to the next process that serves the socket.
func (w *Pending) Close() {
	if w.listener == nil { // reopening it has failed
		return
	}
	w.listener.Close()
	close(w.over)
	w.listener = nil
}

func (w *Pending) answer(conn *net.UnixConn, over <-chan struct{}) {
	defer conn.Close()
	req, files, err := wire.ReadRequest(conn)
	for _, f := range files {
		f.Close()
	}
	if err != nil || req == nil {
		return
	}
	frame := wire.Frame{Error: &wire.Error{Code: exitcode.Failure, Hint: "podrun describe " + w.pod.Name + " shows its state",
		Message: fmt.Sprintf("pod %s waits for %s: no container of it runs yet", w.pod.Name, w.waitsFor)}}
	switch req.Verb {
	case wire.Watch:
		w.serveWatch(conn, over)
		return
	case wire.Stop:
		if req.Stop == nil {
			return
		}
		if req.Stop.Remove { // if the pod starts nevertheless, it removes itself
			if err := w.pod.MarkRemoving(); err != nil {
				report.Print(w.env.ErrOut, err)
			}
		}
		w.RequestStop(req.Stop)
		w.stop(ErrStopped)
		<-over
		return
	case wire.Changed:
		w.Begin()
		select {
		case w.requests <- struct{}{}:
		default: // a request is already queued, or the pod waits for other pods
		}
		frame = wire.Frame{Applied: true}
	}
	_ = wire.WriteFrame(conn, frame) // fails if the client is gone
}

// layerTime is the least interval between two messages to a client about layers.
const layerTime = 100 * time.Millisecond

// serveWatch sends a client the status and the layers, now and at every change.
func (w *Pending) serveWatch(conn *net.UnixConn, over <-chan struct{}) {
	count, last := 0, false
	var shown *pod.Status
	for {
		w.mu.Lock()
		st, changed, changes := w.status, w.changed, w.changes
		var news []wire.LayerProgress
		for _, l := range w.layers {
			if l.change > count {
				news = append(news, l.LayerProgress)
			}
		}
		w.mu.Unlock()
		count = changes
		for i := range news {
			if wire.WriteFrame(conn, wire.Frame{Layer: &news[i]}) != nil {
				return
			}
		}
		if st != shown { // each change of it gets a message
			if shown = st; wire.WriteFrame(conn, wire.Frame{Status: st}) != nil {
				return
			}
		}
		if last {
			return
		}
		if len(news) > 0 {
			select {
			case <-over:
			case <-time.After(layerTime):
			}
		}
		select {
		case <-changed:
		case <-over:
			last = true // sends the changes up to now
		}
	}
}

// Layer records the progress of a layer.
func (w *Pending) Layer(e image.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.layers, func(l numberedLayer) bool { return l.Image == e.Image && l.LayerProgress.Layer == e.Layer })
	if i < 0 {
		i, w.layers = len(w.layers), append(w.layers, numberedLayer{})
	}
	w.changes++
	w.layers[i] = numberedLayer{wire.LayerProgress{Image: e.Image, Layer: e.Layer, Status: string(e.Status), Done: e.Done, Total: e.Total}, w.changes}
	w.notifyWatchers()
}

// notifyWatchers wakes the clients that watch. The caller holds w.mu.
func (w *Pending) notifyWatchers() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Publish changes the status, and writes it for readers and watchers.
func (w *Pending) Publish(change func(*pod.Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := *w.status
	if st.ImagePull != nil {
		pull := *st.ImagePull
		st.ImagePull = &pull
	}
	st.InitContainers, st.Containers = slices.Clone(st.InitContainers), slices.Clone(st.Containers)
	change(&st)
	w.status = &st
	w.notifyWatchers()
	if err := w.pod.WriteStatus(&st); err != nil {
		report.Print(w.env.ErrOut, err)
	}
}

// Begin publishes the start of an attempt to pull the images.
func (w *Pending) Begin() {
	w.Publish(func(st *pod.Status) {
		if st.ImagePull != nil {
			*st.ImagePull = pod.ImagePull{Attempts: st.ImagePull.Attempts}
		}
		w.layers = nil
	})
}

// ForEachStatus calls do for the status of each container.
func ForEachStatus(st *pod.Status, do func(c *pod.ContainerStatus)) {
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			do(&list[i])
		}
	}
}

// RequestStop records how the pod is to be stopped, unless that is already recorded.
func (w *Pending) RequestStop(how *wire.StopRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requestedStop == nil || how.Remove {
		w.requestedStop = how
	}
}

// StopRequested returns the stop that a client has requested, or nil.
func (w *Pending) StopRequested() *wire.StopRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requestedStop
}

// Leave publishes the end of a pod that was stopped before it started. At shutdown it changes nothing,
// because the pod resumes after the reboot. For a pod that is removed next it only marks the pod as
// deleting.
func (w *Pending) Leave(how *wire.StopRequest) {
	if how.Shutdown {
		return
	}
	end := func(st *pod.Status) {
		st.Deleting = how.Evicted == ""
		if how.Remove {
			return
		}
		st.Phase, st.ImagePull, st.Conditions = pod.Failed, nil, nil
		if how.Evicted != "" {
			st.Reason, st.Message = pod.ReasonEvicted, how.Evicted
		}
		ForEachStatus(st, func(c *pod.ContainerStatus) {
			c.State = pod.State{Terminated: &pod.Terminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container was stopped before it was started"}}
		})
	}
	w.Publish(end)
}
