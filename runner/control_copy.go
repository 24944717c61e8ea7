package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/podrun/podrun/internal/nsthread"
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
	if x == nil {
		return notRunning(req.Container, 1)
	}
	defer x.Release()
	ctx, cancel := context.WithCancel(x.Context())
	defer cancel()
	go func() {
		wire.ReadControl(conn) // no frame follows: the read returns when the client disconnects
		cancel()
	}()
	done := &wire.CopyResult{}
	skipped := func(text string) {
		if len(done.Skipped) < maxSkipped {
			done.Skipped = append(done.Skipped, text)
		}
	}
	err := x.Copy(ctx, c.engine.latestPlan().Users, req, files, skipped)
	container.CloseFiles(files...) // end of file for the client
	if x.Context().Err() != nil && err != nil {
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

// dialTimeout is the time limit for a server in the pod to accept.
const dialTimeout = 10 * time.Second

// portForward connects the client to a port of the pod's localhost, over IPv4 or else IPv6 as container
// runtimes do (containerd: internal/cri/server/sandbox_portforward_linux.go).
func (c *control) portForward(conn *net.UnixConn, req *wire.ConnectRequest, _ []*os.File) error {
	inside, err := c.engine.dialLocalhost(req.Port)
	if err != nil {
		return &wire.Error{Message: err.Error(), Code: 1}
	}
	defer inside.Close()
	file, err := inside.File()
	if err != nil {
		return &wire.Error{Message: err.Error(), Code: 1}
	}
	defer file.Close()
	return wire.WriteFrame(conn, wire.Frame{Started: true}, file)
}

func (e *engine) dialLocalhost(port int) (*net.TCPConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("there is no port %d", port)
	}
	var conn net.Conn
	var errs [2]error
	err := nsthread.Do(func() error { // the calling goroutine dials, because there is a single address
		d := net.Dialer{Timeout: dialTimeout}
		for i, to := range []string{"127.0.0.1", "::1"} {
			if conn, errs[i] = d.Dial("tcp", net.JoinHostPort(to, strconv.Itoa(port))); errs[i] == nil {
				return nil
			}
		}
		return fmt.Errorf("failed to connect to localhost:%d inside the pod, IPv4: %w IPv6: %w", port, errs[0], errs[1])
	}, e.NetFiles()...)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
