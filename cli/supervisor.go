package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

const (
	// answerTime is how long a living pod's supervisor may take to open its socket.
	answerTime = 10 * time.Second
	// goneTime is how long a pod's processes may take to be gone after its end.
	goneTime = 10 * time.Second
	pollTime = 5 * time.Millisecond
)

// errNotRunning says that the pod has no processes.
var errNotRunning = errors.New("the pod is not running")

// ask sends a request to the pod's supervisor. A pod that was started this moment
// is waited for. The connection ends with ctx.
func ask(ctx context.Context, p store.Pod, req wire.Request, files ...*os.File) (*net.UnixConn, error) {
	for {
		conn, err := dial(ctx, p)
		if err != nil {
			return nil, err
		}
		err = wire.WriteRequest(conn, req, files...)
		if err == nil {
			return conn, nil
		}
		conn.Close()
		if !hungUp(err) { // it is ending: dial sees when it has
			return nil, fmt.Errorf("ask the supervisor of pod %s: %w", p.Name, err)
		}
		if err := pause(ctx, pollTime); err != nil {
			return nil, err
		}
	}
}

// hungUp says whether an error is the other side's end.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

func dial(ctx context.Context, p store.Pod) (*net.UnixConn, error) {
	deadline := time.Now().Add(answerTime)
	for {
		conn, err := p.Dial()
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
			return conn, nil
		}
		if !p.Alive() {
			return nil, errNotRunning
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		if err := pause(ctx, pollTime); err != nil {
			return nil, err
		}
	}
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
		if err := pause(ctx, pollTime); err != nil {
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
	conn, err := ask(ctx, p, wire.Request{Verb: wire.Stop, Stop: &how})
	if err != nil {
		return err
	}
	defer conn.Close()
	frame, _, err := wire.ReadFrame(conn)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && frame.Error != nil:
		return wireError(frame.Error)
	}
	return err
}

// waitGone returns when no process of the pod is left.
func waitGone(ctx context.Context, p store.Pod) error {
	deadline := time.Now().Add(goneTime)
	for p.Alive() {
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of pod %s are still there", p.Name)
		}
		if err := pause(ctx, pollTime); err != nil {
			return err
		}
	}
	return nil
}

// wireError is what the supervisor said, with its exit code.
func wireError(e *wire.Error) error {
	return &exitError{code: e.Code, err: report.New(report.Internal, e.Hint, "%s", e.Message)}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
