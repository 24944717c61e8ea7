package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/podrun/podrun/internal/treetar"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
)

// maxSkipped limits how many skipped files are reported to a client.
const maxSkipped = 100

// copy copies files for a client into or out of a container, until the copy, the client or the container
// ends.
func (c *control) copy(conn *net.UnixConn, req *wire.CopyRequest, files []*os.File) error {
	x := c.engine.acquire(req.Container)
	alive := context.Background()
	if x != nil {
		defer x.Release()
		alive = x.Context()
	}
	ctx, cancel := context.WithCancel(alive)
	defer cancel()
	go func() {
		wire.ReadControl(conn) // the client sends no Control: the read returns when it disconnects
		cancel()
	}()
	done := &wire.CopyResult{}
	skipped := func(text string) {
		if len(done.Skipped) < maxSkipped {
			done.Skipped = append(done.Skipped, text)
		}
	}
	plan, err := c.engine.latestPlan(), container.ErrNoKeptFiles
	if x != nil {
		err = x.Copy(ctx, plan.Users, req, files, skipped)
	} else if s := c.engine.currentSandbox(); s != nil && req.In {
		if planned, ok := plan.Container(req.Container); ok {
			err = container.New(s, planned, 0).CopyToKept(ctx, s, plan.Users, req, files, skipped)
		}
	}
	container.CloseFiles(files...) // end of file for the client
	switch {
	case errors.Is(err, container.ErrNoKeptFiles):
		return notRunning(req.Container, 1)
	case err != nil && alive.Err() != nil:
		err = fmt.Errorf("the container has ended: %w", err)
	}
	if err != nil {
		return &wire.Error{Message: copyFailure(req, err), Code: 1}
	}
	return wire.WriteFrame(conn, wire.Frame{Copied: done})
}

// copyFailure returns the message of a copy that failed. A missing path is named only once.
func copyFailure(req *wire.CopyRequest, err error) string {
	if !req.In && errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("cannot copy %s of container %s: %v", req.Path, req.Container, treetar.PathErrorReason(err))
	}
	return fmt.Sprintf("copy %s of container %s: %v", req.Path, req.Container, err)
}
