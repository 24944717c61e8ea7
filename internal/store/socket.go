package store

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const socketFile = "control.sock"

// Listen opens the pod's control socket, 0600 in a 0700 directory.
func (p Pod) Listen() (*net.UnixListener, error) {
	dir, addr, err := p.socketAddr()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	os.Remove(filepath.Join(p.runtime, socketFile)) // of a supervisor that was killed
	l, err := net.ListenUnix("unix", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on the control socket of pod %s: %w", p.Name, err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(filepath.Join(p.runtime, socketFile), 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect the control socket of pod %s: %w", p.Name, err)
	}
	return l, nil
}

// Dial connects to the pod's supervisor.
func (p Pod) Dial() (*net.UnixConn, error) {
	dir, addr, err := p.socketAddr()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the supervisor of pod %s: %w", p.Name, err)
	}
	return c, nil
}

// socketAddr returns an address through the open directory: a socket address has 108 bytes, a pod's
// path may have 400.
func (p Pod) socketAddr() (*os.File, *net.UnixAddr, error) {
	dir, err := os.Open(p.runtime)
	if err != nil {
		return nil, nil, fmt.Errorf("open runtime directory of pod %s: %w", p.Name, err)
	}
	return dir, &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketFile), Net: "unix"}, nil
}
