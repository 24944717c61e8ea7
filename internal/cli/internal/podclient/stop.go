package podclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// DefaultNamespace is the namespace of pods that set none.
const DefaultNamespace = "default"

// NamespaceEnv is the environment variable with the namespace for commands that set none.
const NamespaceEnv = "PODRUN_NAMESPACE"

const (
	// GoneTime is how long a pod's processes may take to disappear after its end.
	GoneTime = 10 * time.Second
	// hangupTime is how long the pod of a supervisor that has hung up may take to end, before the next one is asked:
	// a pod that is removed hangs up before its last process ends.
	hangupTime = 50 * time.Millisecond
	// StopMargin is what a stop may take beyond the grace period, for SIGKILL and unmounting.
	StopMargin = 15 * time.Second
)

// pollGone waits until the last of the pod's processes, its monitor, has ended, but at most d. If the
// monitor has ended already or is unknown, it waits for PollTime.
func pollGone(ctx context.Context, p store.Pod, d time.Duration) error {
	pid, ok := p.Monitor()
	if !ok {
		return sleep.For(ctx, PollTime)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return sleep.For(ctx, PollTime)
	}
	defer unix.Close(fd)
	monitor := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(monitor, 0); n != 0 || err != nil {
		return sleep.For(ctx, PollTime)
	}
	_, _ = unix.Poll(monitor, int(d.Milliseconds())) // if interrupted, the caller repeats it
	return ctx.Err()
}

// Retry calls request again while the supervisor hangs up and the pod is alive, because another supervisor will
// answer. Once the pod is gone it returns ErrNotRunning, even if there is already another pod of its name.
func Retry(ctx context.Context, p store.Pod, request func() error) error {
	life := p.Incarnation()
	for {
		if err := request(); !IsHangup(err) {
			return err
		}
		if p.Lives(life) {
			if err := pollGone(ctx, p, hangupTime); err != nil {
				return err
			}
		}
		if !p.Lives(life) {
			return ErrNotRunning
		}
	}
}

// Request sends a request to the pod's supervisor, or the next one, and returns when it is done. It
// returns a refusal as ResponseError does.
func Request(ctx context.Context, p store.Pod, req wire.Request) error {
	return Retry(ctx, p, func() error {
		conn, err := Send(ctx, p, req)
		if err != nil {
			return err
		}
		defer conn.Close()
		frame, _, err := wire.ReadFrame(conn)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && frame.Error != nil:
			return ResponseError(frame.Error)
		}
		return err
	})
}

// DiskUsage returns what a running pod uses of the disk.
func DiskUsage(ctx context.Context, p store.Pod) (usage *wire.DiskUsageResult, err error) {
	conn, err := Send(ctx, p, wire.Request{Verb: wire.DiskUsage})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	frame, _, err := wire.ReadFrame(conn)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the disk usage of pod %s: %w", p.Name, err)
	case frame.Error != nil:
		return nil, ResponseError(frame.Error)
	}
	return frame.DiskUsage, nil
}

// RequestStop requests the stop of the pod and returns when the supervisor reports its end. A later request does
// not give the pod more time.
func RequestStop(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	if podInit, lost := p.LostRuntime(); lost {
		return endLost(ctx, p, podInit, how.GraceSeconds)
	}
	return requestStop(ctx, p, how)
}

// requestStop is RequestStop for a pod that has its runtime directory.
func requestStop(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	err := Request(ctx, p, wire.Request{Verb: wire.Stop, Stop: &how})
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

// waitGone returns when no process of an incarnation of the pod is left. It does not wait for the next incarnation.
func waitGone(ctx context.Context, p store.Pod, life store.Incarnation) error {
	deadline := time.Now().Add(GoneTime)
	for p.Lives(life) {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of pod %s still exist", p.Name)
		}
		if err := pollGone(ctx, p, PollTime); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown stops a pod gracefully because the machine shuts down, and keeps the data that it resumes with. When
// killNow is closed it kills the pod.
func Shutdown(ctx context.Context, p store.Pod, killNow <-chan struct{}) error {
	if !p.Alive() {
		return nil
	}
	endTurn, err := stopTurns.take(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	life := p.Incarnation()
	within, cancel := context.WithTimeout(ctx, stopTimeout(p, nil))
	defer cancel()
	request := func(grace *int64) error {
		return RequestStop(within, p, wire.StopRequest{GraceSeconds: grace, Shutdown: true})
	}
	go func() {
		select {
		case <-killNow:
			_ = request(new(int64)) // the first request returns the result
		case <-within.Done():
		}
	}()
	if err := request(nil); err != nil {
		return fmt.Errorf("end pod %s: %w", p.Name, err)
	}
	return waitGone(ctx, p, life)
}

// errReplaced means that another pod of the same name exists.
var errReplaced = errors.New("another pod of that name was created")

// lockGone takes the lock of a pod after an incarnation, and waits at most GoneTime for its holder.
func lockGone(ctx context.Context, p store.Pod, life store.Incarnation) (*os.File, error) {
	deadline := time.Now().Add(GoneTime)
	for {
		lock, err := p.Lock()
		if errors.Is(err, store.ErrLocked) && p.Succeeded(life) {
			return nil, errReplaced
		}
		if err == nil || !errors.Is(err, store.ErrLocked) || time.Now().After(deadline) {
			return lock, err
		}
		if err := pollGone(ctx, p, PollTime); err != nil {
			return nil, err
		}
	}
}

// stopTimeout returns how long a stop may take at most; grace is nil for the pod's own.
func stopTimeout(p store.Pod, grace *int64) time.Duration {
	if grace != nil {
		return time.Duration(*grace)*time.Second + StopMargin
	}
	plan, err := p.Plan()
	if err != nil {
		return StopMargin // incomplete: it has no containers
	}
	return time.Duration(plan.GraceSeconds)*time.Second + StopMargin
}

// StopOptions are the options of Stop. With the zero value the pod has its own grace period, and its files
// stay.
type StopOptions struct {
	Grace    *int64                // seconds; nil: the pod's own
	Remove   func(store.Pod) error // removes what is left of a stopped pod; nil: it stays
	Kill     func(store.Pod) error // kills a pod whose supervisor does not answer; nil: that is an error
	Progress io.Writer             // receives the names of containers that still run; nil: nothing
	Evicted  string                // the message of a pod that is evicted; "": it is not
}

// Stop stops a pod, and returns when no process of it is left. The pod's own processes remove it, if it is
// to be removed. Remove handles what they leave when they are killed, or are of an older podrun. It may be called for
// many pods at once: it waits for its turn.
func Stop(ctx context.Context, p store.Pod, o StopOptions) error {
	endTurn, err := stopTurns.take(ctx)
	if err != nil {
		return err
	}
	defer endTurn()
	if o.Progress != nil {
		defer ReportWaiting(o.Progress, "stopping", p, o.Grace, nil)()
	}
	life := p.Incarnation()
	if err := o.end(ctx, p); err != nil {
		return err
	}
	err = waitGone(ctx, p, life) // its monitor removes it
	if o.Remove == nil || ctx.Err() != nil {
		return err
	}
	if !p.HasRemains() || p.Succeeded(life) {
		return nil
	}
	return removeAfter(ctx, p, life, o.Remove)
}

// Down stops and removes a pod, as Stop does, with recorded changes of it.
func Down(ctx context.Context, dirs store.Dirs, p store.Pod, o StopOptions) error {
	if err := dirs.RemoveReplacement(p); err != nil {
		return err
	}
	if err := Stop(ctx, p, o); err != nil {
		return err
	}
	return dirs.RemoveUpdate(p)
}

// BeginDown is Down, except that it returns when the pod is being removed. The pod's own processes go on after that.
func BeginDown(ctx context.Context, dirs store.Dirs, p store.Pod, o StopOptions) error {
	if !p.Alive() || o.Kill != nil {
		return Down(ctx, dirs, p, o)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Down(within, dirs, p, o) }()
	for life := p.Incarnation(); ; {
		select {
		case err := <-done:
			return err
		case <-time.After(PollTime):
			if IsEnding(p) || !p.Lives(life) {
				return dirs.RemoveUpdate(p)
			}
		}
	}
}

// forceTime is how long a supervisor may take to answer before Kill.
const forceTime = 3 * time.Second

// end requests the stop of the pod from its supervisor, and waits for a limited time.
func (o StopOptions) end(ctx context.Context, p store.Pod) error {
	limit := stopTimeout(p, o.Grace)
	podInit, lost := p.LostRuntime()
	if lost && o.Progress != nil {
		fmt.Fprintf(o.Progress, "podrun: the runtime directory of pod %s was deleted: its processes are ended by signals\n", p.Name)
	}
	if o.Kill != nil {
		limit = forceTime
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	if lost {
		err = endLost(within, p, podInit, o.Grace)
	} else {
		err = requestStop(within, p, wire.StopRequest{GraceSeconds: o.Grace, Remove: o.Remove != nil, Evicted: o.Evicted})
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case o.Kill != nil:
		return o.Kill(p)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("it has not ended within %v", limit)
	}
	return report.New(report.Failure, forceHint(p), "cannot stop pod %s: %w", p.Name, err)
}

// Remove calls remove for a pod that has ended, once its last process is gone.
func Remove(ctx context.Context, p store.Pod, remove func(store.Pod) error) error {
	return removeAfter(ctx, p, p.Incarnation(), remove)
}

// removeAfter is Remove after an incarnation. It does nothing if there is another one.
func removeAfter(ctx context.Context, p store.Pod, life store.Incarnation, remove func(store.Pod) error) error {
	lock, err := lockGone(ctx, p, life)
	if errors.Is(err, errReplaced) {
		return nil
	}
	if err != nil {
		return report.New(report.Failure, forceHint(p), "cannot remove pod %s: %w", p.Name, err)
	}
	defer lock.Close()
	if err := remove(p); err != nil {
		return fmt.Errorf("cannot remove pod %s: %w", p.Name, err)
	}
	return nil
}

func forceHint(p store.Pod) string {
	if p.Namespace == DefaultNamespace {
		return fmt.Sprintf("podrun down %s --force kills it at once", p.Name)
	}
	return fmt.Sprintf("podrun down %s -n %s --force kills it at once", p.Name, p.Namespace)
}
