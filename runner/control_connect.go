package runner

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/internal/wire"
)

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
	err := nsthread.Do(func() error { // net.Dialer starts no goroutine for a single address, so this thread dials
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
