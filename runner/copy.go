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
)

// maxSkipped bounds what a client is told of files that were left out.
const maxSkipped = 100

// copy carries files for a client into a container or out of it, as long as both live.
func (c *control) copy(conn *net.UnixConn, req *wire.CopyRequest, files []*os.File) error {
	x := c.engine.enter(req.Container)
	if x == nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{
			Message: fmt.Sprintf("container %s is not running", req.Container), Code: 1, Hint: "podrun ps shows its state",
		}})
	}
	defer x.release()
	ctx, cancel := context.WithCancel(x.context())
	defer cancel()
	go func() {
		wire.ReadControl(conn) // there is none: it is the client's end
		cancel()
	}()
	done := &wire.Copied{}
	skipped := func(text string) {
		if len(done.Skipped) < maxSkipped {
			done.Skipped = append(done.Skipped, text)
		}
	}
	err := x.carry(ctx, c.engine.latest().Users, req, files, skipped)
	for _, f := range files {
		f.Close() // the end of the stream
	}
	if x.context().Err() != nil && err != nil {
		err = fmt.Errorf("the container has ended meanwhile: %w", err)
	}
	if err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: copyFailure(req, err), Code: 1}})
	}
	return wire.WriteFrame(conn, wire.Frame{Copied: done})
}

// copyFailure is the message of a copy that failed. What is not there is named once.
func copyFailure(req *wire.CopyRequest, err error) string {
	if !req.In && errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("cannot copy %s of container %s: %v", req.Path, req.Container, treetar.PathErrorReason(err))
	}
	return fmt.Sprintf("copy %s of container %s: %v", req.Path, req.Container, err)
}
