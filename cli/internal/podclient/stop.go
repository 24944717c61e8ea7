package podclient

import (
	"context"
	"errors"
	"fmt"
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
	// StopMargin is what a stop may take beyond the grace period, for SIGKILL and unmounting.
	StopMargin = 15 * time.Second
)

// pollGone waits until the last of the pod's processes, its monitor, has ended, but at most d. If the
// monitor has ended already or is unknown, it waits for d.
func pollGone(ctx context.Context, p store.Pod, d time.Duration) error {
	pid, ok := p.Monitor()
	if !ok {
		return sleep.For(ctx, d)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return sleep.For(ctx, d)
	}
	defer unix.Close(fd)
	guard := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(guard, 0); n != 0 || err != nil {
		return sleep.For(ctx, d)
	}
	_, _ = unix.Poll(guard, int(d.Milliseconds())) // if interrupted, the caller repeats it
	return ctx.Err()
}

// Retry repeats ask while the supervisor hangs up and the pod is alive, because another supervisor will
// answer. Once the pod is gone it returns ErrNotRunning.
func Retry(ctx context.Context, p store.Pod, ask func() error) error {
	for {
		err := ask()
		switch {
		case !IsHangup(err):
			return err
		case !p.Alive():
			return ErrNotRunning
		}
		if err := pollGone(ctx, p, PollTime); err != nil {
			return err
		}
	}
}

// Request sends a request and returns the supervisor's answer when it is done: nil, or why it refuses.
func Request(ctx context.Context, p store.Pod, req wire.Request) (*wire.Error, error) {
	conn, err := Ask(ctx, p, req)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	frame, _, err := wire.ReadFrame(conn)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return frame.Error, err
}

// Stop asks the pod to stop and returns when the supervisor reports its end.
func Stop(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	err := Retry(ctx, p, func() error { return StopOnce(ctx, p, how) })
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

// StopOnce is Stop with one supervisor. A later request does not give the pod more time.
func StopOnce(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	refusal, err := Request(ctx, p, wire.Request{Verb: wire.Stop, Stop: &how})
	if err == nil && refusal != nil {
		return newRefused(refusal)
	}
	return err
}

// WaitGone returns when no process of the pod is left.
func WaitGone(ctx context.Context, p store.Pod) error {
	deadline := time.Now().Add(GoneTime)
	for p.Alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of pod %s are still there", p.Name)
		}
		if err := pollGone(ctx, p, PollTime); err != nil {
			return err
		}
	}
	return nil
}

// LockWithin takes the pod's lock, and waits at most limit for its holder.
func LockWithin(ctx context.Context, p store.Pod, limit time.Duration) (*os.File, error) {
	deadline := time.Now().Add(limit)
	for {
		lock, err := p.Lock()
		if err == nil || !errors.Is(err, store.ErrLocked) || time.Now().After(deadline) {
			return lock, err
		}
		if err := pollGone(ctx, p, PollTime); err != nil {
			return nil, err
		}
	}
}

// StopTimeout returns how long a stop may take at most; grace is nil for the pod's own.
func StopTimeout(p store.Pod, grace *int64) time.Duration {
	if grace != nil {
		return time.Duration(*grace)*time.Second + StopMargin
	}
	plan, err := p.Plan()
	if err != nil {
		return StopMargin // incomplete: it has no containers
	}
	return time.Duration(plan.GraceSeconds)*time.Second + StopMargin
}

// End is Stop with a time limit, and with a hint for the user in its error.
func End(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	limit := StopTimeout(p, how.GraceSeconds)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := Stop(within, p, how)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it has not ended within %v", limit)
	}
	return report.New(report.Failure, forceHint(p), "cannot stop pod %s: %w", p.Name, err)
}

// Down stops a pod by calling end, which requests its removal, and returns when the pod is completely
// gone. The pod's own processes remove it. remove handles what they leave when they are killed, or are of
// an older podrun.
func Down(ctx context.Context, p store.Pod, end func() error, removeFunc func(store.Pod) error) error {
	guard := -1 // opened before the end: afterwards the monitor's pid is no longer recorded
	if pid, ok := p.Monitor(); ok {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			guard = fd
			defer unix.Close(fd)
		}
	}
	if err := end(); err != nil {
		return err
	}
	if guard >= 0 {
		over, err := guardEnds(ctx, p, guard)
		if err != nil {
			return err
		}
		if over && p.Alive() {
			return nil // another pod of that name was created since
		}
	}
	if !p.HasRemains() {
		return nil
	}
	return remove(ctx, p, removeFunc)
}

// guardEnds waits until a pod's monitor has ended. over is false if the pod is no longer alive before
// that, or after GoneTime.
func guardEnds(ctx context.Context, p store.Pod, guard int) (over bool, err error) {
	fds := []unix.PollFd{{Fd: int32(guard), Events: unix.POLLIN}}
	for deadline := time.Now().Add(GoneTime); time.Now().Before(deadline); {
		alive := p.Alive()
		if n, _ := unix.Poll(fds, int(PollTime.Milliseconds())); n > 0 { // if interrupted, it is repeated
			return true, nil
		}
		if !alive || ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// remove calls remove for a pod that has ended, once its last process is gone.
func remove(ctx context.Context, p store.Pod, remove func(store.Pod) error) error {
	lock, err := LockWithin(ctx, p, GoneTime)
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
		return fmt.Sprintf("podrun down %s --force ends it at once", p.Name)
	}
	return fmt.Sprintf("podrun down %s -n %s --force ends it at once", p.Name, p.Namespace)
}
