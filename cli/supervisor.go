package cli

import (
	"context"
	"errors"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// watch hands every status of the pod to seen, until the pod has ended or seen
// says enough. A pod that has ended already has shown its last status before.
func watch(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool)) error {
	return watchLayers(ctx, p, seen, func(wire.LayerProgress) {})
}

// watchLayers is watch that also hands on how far the layers of images are that are pulled.
func watchLayers(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	begun := false
	err := remote.Persist(ctx, p, func() error {
		return watchOnce(ctx, p, func(st *pod.Status) bool {
			begun = true
			return seen(st)
		}, layer)
	})
	if begun && errors.Is(err, remote.ErrNotRunning) {
		return nil
	}
	return err
}

func watchOnce(ctx context.Context, p store.Pod, seen func(*pod.Status) (enough bool), layer func(wire.LayerProgress)) error {
	conn, err := remote.Ask(ctx, p, wire.Request{Verb: wire.Watch})
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
		case frame.Layer != nil:
			layer(*frame.Layer)
		case frame.Status != nil:
			if seen(frame.Status) {
				return nil
			}
		}
	}
}

// stop asks for the end of the pod and waits for it; grace is nil for the pod's own.
func stop(ctx context.Context, p store.Pod, grace *int64) error {
	return remote.Stop(ctx, p, wire.StopRequest{GraceSeconds: grace})
}

// wireError is what the supervisor said, with its exit code.
func wireError(e *wire.Error) error {
	no := remote.NewRefused(e)
	return &exitError{code: no.Code, err: no.Err}
}
