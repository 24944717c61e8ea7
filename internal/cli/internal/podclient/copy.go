package podclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// Copy copies files into or out of a container. local writes or reads the tar stream on this side. skipped lists what
// was left out, and why.
func Copy(ctx context.Context, p store.Pod, req *wire.CopyRequest, local func(context.Context, *os.File) error) (skipped []string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	stream, remote := r, w
	if req.In {
		stream, remote = w, r
	}
	defer stream.Close()
	conn, err := Send(ctx, p, wire.Request{Verb: wire.Copy, Copy: req}, remote)
	remote.Close()
	if errors.Is(err, ErrNotRunning) {
		return nil, report.New(report.Failure, "podrun ps shows its state", "cannot copy: pod %q is not running", p.Name)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { stream.SetDeadline(time.Unix(0, 1)) })
	err = local(ctx, stream)
	stream.Close()
	frame, _, rerr := wire.ReadFrame(conn)
	cut := req.In || err == nil || errors.Is(err, io.ErrUnexpectedEOF) // then the other side has the cause
	switch {
	case rerr == nil && frame.Error != nil && cut:
		return nil, ResponseError(frame.Error)
	case err != nil:
		return nil, fmt.Errorf("copy: %w", err)
	case rerr != nil:
		return nil, report.New(report.Failure, "the files copied so far are kept; run podrun cp again", "lost the supervisor of pod %s before the copy was complete: %w", p.Name, rerr)
	case frame.Copied == nil:
		return nil, errors.New("unexpected reply of the supervisor to cp")
	}
	return frame.Copied.Skipped, nil
}
