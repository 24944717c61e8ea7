// Package podclient is the client of a pod's control socket: it finds the supervisor, sends requests, and
// runs commands in containers. The fast path (internal/cli/fastpath) links it, so it must not import flags or
// manifests.
package podclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

const (
	// AnswerTime is how long a running pod's supervisor may take to open its socket.
	AnswerTime = 10 * time.Second
	// PollTime is the polling interval for state without notification.
	PollTime = 5 * time.Millisecond
)

// ErrNotRunning means that the pod has no processes.
var ErrNotRunning = errors.New("the pod is not running")

// Send sends a request, with the descriptors that belong to it, to the pod's supervisor and returns the
// connection for the answer. It waits for a pod that was just started. The connection is closed when ctx
// ends.
func Send(ctx context.Context, p store.Pod, req wire.Request, files ...*os.File) (*net.UnixConn, error) {
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
		if !IsHangup(err) { // the supervisor is ending; dial notices its end
			return nil, fmt.Errorf("connect to the supervisor of pod %s: %w", p.Name, err)
		}
		if err := sleep.For(ctx, PollTime); err != nil {
			return nil, err
		}
	}
}

// IsHangup reports whether an error means that the other side has closed the connection.
func IsHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

func dial(ctx context.Context, p store.Pod) (*net.UnixConn, error) {
	deadline, life := time.Now().Add(AnswerTime), p.Incarnation()
	for {
		conn, err := p.Dial()
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
			return conn, nil
		}
		if !p.Lives(life) {
			return nil, ErrNotRunning
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		if err := sleep.For(ctx, PollTime); err != nil {
			return nil, err
		}
	}
}
