package podclient

import (
	"context"
	"errors"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Follow calls onChange with every status of the pod until onChange returns true, or the pod has ended and its processes are
// gone, and returns the last status. For a pod that was killed, or has ended before the first request, that is the status
// of its record.
func Follow(ctx context.Context, p store.Pod, onChange func(*pod.Status) (enough bool)) (last *pod.Status, err error) {
	life, enough := p.Incarnation(), false
	err = WatchStatus(ctx, p, func(st *pod.Status) bool {
		last, enough = st, onChange(st)
		return enough
	})
	switch {
	case enough:
		return last, nil
	case ctx.Err() != nil:
		return last, ctx.Err()
	case err != nil && !errors.Is(err, ErrNotRunning):
		return last, err
	}
	if err := waitGone(ctx, p, life); err != nil || last != nil && last.Phase.Terminal() {
		return last, err
	}
	if last, err = podview.StatusOf(p); err == nil {
		onChange(last)
	}
	return last, err
}

// WatchStatus calls onChange with every status of the pod, until the pod has ended or onChange returns true. For
// a pod that has ended already it first calls onChange with the last status.
func WatchStatus(ctx context.Context, p store.Pod, onChange func(*pod.Status) (enough bool)) error {
	return WatchStatusAndLayers(ctx, p, onChange, func(wire.LayerProgress) {})
}

// WatchStatusAndLayers is WatchStatus that also passes on the progress of image layers.
func WatchStatusAndLayers(ctx context.Context, p store.Pod, onChange func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	begun := false
	err := Retry(ctx, p, func() error {
		return watchOnce(ctx, p, func(st *pod.Status) bool {
			begun = true
			return onChange(st)
		}, layer)
	})
	if begun && errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

func watchOnce(ctx context.Context, p store.Pod, onChange func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	conn, err := Send(ctx, p, wire.Request{Verb: wire.Watch})
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
			if onChange(frame.Status) {
				return nil
			}
		}
	}
}

// ResponseError returns a supervisor's error, with its exit code.
func ResponseError(e *wire.Error) error {
	return &exitcode.Error{Code: e.Code, Err: report.New(report.Failure, e.Hint, "%s", e.Message)}
}

// NotifyTime is how long a supervisor may take to process a notification of a changed object. A
// supervisor that hibernates has to be started first.
const NotifyTime = 10 * time.Second
