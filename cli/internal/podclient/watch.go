package podclient

import (
	"context"
	"errors"
	"time"

	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// WatchStatus calls seen with every status of the pod, until the pod has ended or seen returns true. For
// a pod that has ended already it first calls seen with the last status.
func WatchStatus(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool)) error {
	return WatchStatusAndLayers(ctx, p, seen, func(wire.LayerProgress) {})
}

// WatchStatusAndLayers is WatchStatus that also passes on the progress of image layers.
func WatchStatusAndLayers(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	begun := false
	err := Retry(ctx, p, func() error {
		return watchOnce(ctx, p, func(st *pod.Status) bool {
			begun = true
			return seen(st)
		}, layer)
	})
	if begun && errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

func watchOnce(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	conn, err := Ask(ctx, p, wire.Request{Verb: wire.Watch})
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
			return ResponseError(frame.Error)
		case frame.Layer != nil:
			layer(*frame.Layer)
		case frame.Status != nil:
			if seen(frame.Status) {
				return nil
			}
		}
	}
}

// StopWithGrace asks the pod to stop and waits for its end; grace is nil for the pod's own.
func StopWithGrace(ctx context.Context, p store.Pod, grace *int64) error {
	return Stop(ctx, p, wire.StopRequest{GraceSeconds: grace})
}

// ResponseError returns a supervisor's error, with its exit code.
func ResponseError(e *wire.Error) error {
	no := newRefused(e)
	return &exitcode.Error{Code: no.Code, Err: no.Err}
}

// Notify sends one request to the pod's supervisor and waits for its answer.
func Notify(ctx context.Context, p store.Pod, req wire.Request) error {
	conn, err := Ask(ctx, p, req)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	frame, _, err := wire.ReadFrame(conn)
	switch {
	case err != nil:
		return err
	case frame.Error != nil:
		return ResponseError(frame.Error)
	}
	return nil
}

// NotifyTime is how long a supervisor may take to process a notification of a changed object. A
// supervisor that hibernates has to be started first.
const NotifyTime = 10 * time.Second
