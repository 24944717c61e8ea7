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

// WatchStatus hands every status of the pod to seen, until the pod has ended or seen
// says enough. A pod that has ended already has shown its last status before.
func WatchStatus(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool)) error {
	return WatchStatusAndLayers(ctx, p, seen, func(wire.LayerProgress) {})
}

// WatchStatusAndLayers is watch that also hands on how far the layers of images are that are pulled.
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

// StopWithGrace asks for the end of the pod and waits for it; grace is nil for the pod's own.
func StopWithGrace(ctx context.Context, p store.Pod, grace *int64) error {
	return Stop(ctx, p, wire.StopRequest{GraceSeconds: grace})
}

// ResponseError is what the supervisor said, with its exit code.
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

// NotifyTime is how long a supervisor may take to hear of a changed object: one that dozes
// has to be begun first.
const NotifyTime = 10 * time.Second
