package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

const (
	// goneTime is how long a pod's processes may take to be gone after its end.
	goneTime   = 10 * time.Second
	answerTime = remote.AnswerTime
	pollTime   = remote.PollTime
)

// errNotRunning says that the pod has no processes.
var errNotRunning = remote.ErrNotRunning

func ask(ctx context.Context, p store.Pod, req wire.Request, files ...*os.File) (*net.UnixConn, error) {
	return remote.Ask(ctx, p, req, files...)
}

func hungUp(err error) bool { return remote.HungUp(err) }

func pause(ctx context.Context, d time.Duration) error { return remote.Pause(ctx, d) }

// untilGone waits until the last of the pod's processes, its guard, ends, but no longer than
// d. Of one that has ended before it only lets the time pass.
func untilGone(ctx context.Context, p store.Pod, d time.Duration) error {
	pid, ok := p.Guard()
	if !ok {
		return pause(ctx, d)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return pause(ctx, d)
	}
	defer unix.Close(fd)
	guard := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(guard, 0); n != 0 || err != nil {
		return pause(ctx, d)
	}
	_, _ = unix.Poll(guard, int(d.Milliseconds())) // cut short it is tried again
	return ctx.Err()
}

// persist asks again as long as the supervisor hangs up and the pod lives: another one
// will answer. Then the answer is errNotRunning.
func persist(ctx context.Context, p store.Pod, ask func() error) error {
	for {
		err := ask()
		switch {
		case !hungUp(err):
			return err
		case !p.Alive():
			return errNotRunning
		}
		if err := untilGone(ctx, p, pollTime); err != nil {
			return err
		}
	}
}

// watch hands every status of the pod to seen, until the pod has ended or seen
// says enough. A pod that has ended already has shown its last status before.
func watch(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool)) error {
	begun := false
	err := persist(ctx, p, func() error {
		return watchOnce(ctx, p, func(st *pod.Status) bool {
			begun = true
			return seen(st)
		})
	})
	if begun && errors.Is(err, errNotRunning) {
		return nil
	}
	return err
}

func watchOnce(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool)) error {
	conn, err := ask(ctx, p, wire.Request{Verb: wire.Watch})
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		frame, files, err := wire.ReadFrame(conn)
		for _, f := range files {
			f.Close()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case frame.Error != nil:
			return wireError(frame.Error)
		case frame.Status != nil:
			if seen(frame.Status) {
				return nil
			}
		}
	}
}

// stop asks for the end of the pod and returns when the supervisor says it has
// ended. grace is nil for the pod's own.
func stop(ctx context.Context, p store.Pod, grace *int64) error {
	err := persist(ctx, p, func() error { return stopOnce(ctx, p, wire.StopRequest{GraceSeconds: grace}) })
	if errors.Is(err, errNotRunning) {
		return nil
	}
	return err
}

// stopOnce is stop of one supervisor. A later request gives the pod no more time.
func stopOnce(ctx context.Context, p store.Pod, how wire.StopRequest) error {
	refusal, err := answerTo(ctx, p, wire.Request{Verb: wire.Stop, Stop: &how})
	if err == nil && refusal != nil {
		return wireError(refusal)
	}
	return err
}

// answerTo is what a supervisor says when it has done what it was asked for: nothing, or
// why it does not.
func answerTo(ctx context.Context, p store.Pod, req wire.Request) (*wire.Error, error) {
	conn, err := ask(ctx, p, req)
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

// waitGone returns when no process of the pod is left.
func waitGone(ctx context.Context, p store.Pod) error {
	deadline := time.Now().Add(goneTime)
	for p.Alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of pod %s are still there", p.Name)
		}
		if err := untilGone(ctx, p, pollTime); err != nil {
			return err
		}
	}
	return nil
}

// wireError is what the supervisor said, with its exit code.
func wireError(e *wire.Error) error {
	return &exitError{code: e.Code, err: report.New(report.Internal, e.Hint, "%s", e.Message)}
}
