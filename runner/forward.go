package runner

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/wire"
)

// forwardTime is how long a server in the pod may take to accept.
const forwardTime = 10 * time.Second

// connect gives the client a connection to the pod's localhost, over IPv4 or else IPv6 as
// container runtimes do (containerd: internal/cri/server/sandbox_portforward_linux.go).
func (c *control) connect(conn *net.UnixConn, req *wire.ConnectRequest) error {
	inside, err := c.engine.connectInside(req.Port)
	if err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: err.Error(), Code: 1}})
	}
	defer inside.Close()
	file, err := inside.File()
	if err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: &wire.Error{Message: err.Error(), Code: 1}})
	}
	defer file.Close()
	return wire.WriteFrame(conn, wire.Frame{Started: true}, file)
}

func (e *engine) connectInside(port int) (*net.TCPConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("there is no port %d", port)
	}
	var conn net.Conn
	var errs [2]error
	err := nsthread.Do(func() error { // a single address is dialed by the calling goroutine
		d := net.Dialer{Timeout: forwardTime}
		for i, to := range []string{"127.0.0.1", "::1"} {
			if conn, errs[i] = d.Dial("tcp", net.JoinHostPort(to, strconv.Itoa(port))); errs[i] == nil {
				return nil
			}
		}
		return fmt.Errorf("failed to connect to localhost:%d inside the pod, IPv4: %w IPv6: %w", port, errs[0], errs[1])
	}, e.netFiles()...)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}
