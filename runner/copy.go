package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/treetar"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
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
	defer x.execs.Done()
	ctx, cancel := context.WithCancel(x.life.begin())
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
	if x.life.begin().Err() != nil && err != nil {
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
		return fmt.Sprintf("cannot copy %s of container %s: %v", req.Path, req.Container, treetar.Plain(err))
	}
	return fmt.Sprintf("copy %s of container %s: %v", req.Path, req.Container, err)
}

func (x *container) carry(ctx context.Context, users *pod.IDRange, req *wire.CopyRequest, files []*os.File, skipped func(string)) error {
	if len(files) != 1 {
		return fmt.Errorf("a copy needs 1 descriptor, %d came", len(files))
	}
	stream, err := endable(ctx, files[0])
	if err != nil {
		return err
	}
	defer stream.Close()
	// Its root as its processes see it, volumes included.
	root, err := treetar.Inside(fmt.Sprintf("/proc/%d/root", x.PID))
	if err != nil {
		return err
	}
	defer root.Close()
	if users != nil {
		root.OwnIDs(users.First, users.Count)
	}
	at := req.Path
	if !strings.HasPrefix(at, "/") {
		at = strings.TrimSuffix(x.plan.Cwd, "/") + "/" + at
	}
	if !req.In {
		return root.Pack(ctx, stream, at, req.As, skipped)
	}
	return root.Unpack(ctx, stream, at, req.Whole, treetar.How{
		UID: x.who.uid, GID: x.who.gid, Owners: req.Owners, Plain: req.Plain, Skipped: skipped,
	})
}

// endable is another File of a pipe, which neither reads nor writes once ctx has ended: a
// client that is suspended must not hold the pod.
func endable(ctx context.Context, f *os.File) (*os.File, error) {
	if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
		return nil, fmt.Errorf("take a stream: %w", err)
	}
	d, err := dupFile(int(f.Fd()))
	if err == nil {
		if err = d.SetDeadline(time.Time{}); errors.Is(err, os.ErrNoDeadline) {
			d.Close()
			return nil, errors.New("take a stream: it is no pipe")
		}
		context.AfterFunc(ctx, func() { d.SetDeadline(time.Unix(0, 1)) })
	}
	return d, err
}
