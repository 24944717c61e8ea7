package podclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// DefaultNamespace is a pod's that has no other.
const DefaultNamespace = "default"

// NamespaceEnv is the environment variable with the namespace of commands that name none.
const NamespaceEnv = "PODRUN_NAMESPACE"

const (
	// GoneTime is how long a pod's processes may take to be gone after its end.
	GoneTime = 10 * time.Second
	// StopMargin is what a stop may take beyond the grace period: SIGKILL, unmounting.
	StopMargin = 15 * time.Second
)

// pollGone waits until the last of the pod's processes, its guard, ends, but no longer than
// d. Of one that has ended before it only lets the time pass.
func pollGone(ctx context.Context, p store.Pod, d time.Duration) error {
	pid, ok := p.Monitor()
	if !ok {
		return Sleep(ctx, d)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return Sleep(ctx, d)
	}
	defer unix.Close(fd)
	guard := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(guard, 0); n != 0 || err != nil {
		return Sleep(ctx, d)
	}
	_, _ = unix.Poll(guard, int(d.Milliseconds())) // cut short it is tried again
	return ctx.Err()
}

// Retry asks again as long as the supervisor hangs up and the pod lives: another one
// will answer. Then the answer is ErrNotRunning.
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

// Request is what a supervisor says when it has done what it was asked for: nothing, or
// why it does not.
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

// Stop asks for the end of the pod and returns when the supervisor says it has
// ended.
func Stop(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	err := Retry(ctx, p, func() error { return StopOnce(ctx, p, how) })
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

// StopOnce is Stop of one supervisor. A later request gives the pod no more time.
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

// LockWithin takes the pod, and waits for whoever has it no longer than limit.
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

// StopTimeout is how long a stop may take at the most; grace is nil for the pod's own.
func StopTimeout(p store.Pod, grace *int64) time.Duration {
	if grace != nil {
		return time.Duration(*grace)*time.Second + StopMargin
	}
	plan, err := p.Plan()
	if err != nil {
		return StopMargin // half made: it has no containers
	}
	return time.Duration(plan.GraceSeconds)*time.Second + StopMargin
}

// End is Stop that does not wait for ever, and says what the user can do then.
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

// Down ends a pod by end, which asks for its removal, and returns when nothing is left of it.
// The pod's own processes remove it; remove is for what they leave when they are killed, or
// are of an older podrun.
func Down(ctx context.Context, p store.Pod, end func() error, removeFunc func(store.Pod) error) error {
	guard := -1 // before the end: afterwards nothing names it
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
			return nil // another pod of the name, which was made since
		}
	}
	if !p.HasRemains() {
		return nil
	}
	return remove(ctx, p, removeFunc)
}

// guardEnds waits until a pod's guard has ended, unless the pod ends without that or takes
// longer than GoneTime.
func guardEnds(ctx context.Context, p store.Pod, guard int) (over bool, err error) {
	fds := []unix.PollFd{{Fd: int32(guard), Events: unix.POLLIN}}
	for deadline := time.Now().Add(GoneTime); time.Now().Before(deadline); {
		alive := p.Alive()
		if n, _ := unix.Poll(fds, int(PollTime.Milliseconds())); n > 0 { // cut short it is tried again
			return true, nil
		}
		if !alive || ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// remove has a pod that has ended removed, once its last process is gone.
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
