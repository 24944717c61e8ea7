package cmdutil

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/podrun/podrun/internal/report"
)

// ListenPrivately listens at a socket that only the user can open. A socket without a listener is left
// from a killed command: it is replaced. what names in errors what is served: the page.
func ListenPrivately(path, what string) (net.Listener, error) {
	l, err := listenAlone(path)
	if errors.Is(err, syscall.EADDRINUSE) {
		st, serr := os.Lstat(path)
		if serr == nil && st.Mode().Type() != os.ModeSocket {
			return nil, report.New(report.Failure, "choose a path that does not exist", "cannot serve %s at %s: it is not a socket", what, path)
		}
		conn, cerr := net.Dial("unix", path)
		switch {
		case cerr == nil:
			conn.Close()
			return nil, report.New(report.Failure, "choose another path, or use "+what+" that the process serves", "cannot serve %s at %s: another process listens on it", what, path)
		case errors.Is(cerr, syscall.ECONNREFUSED):
			if err = os.Remove(path); err == nil {
				l, err = listenAlone(path)
			}
		}
	}
	if err != nil {
		return nil, report.New(report.Failure, "", "cannot serve %s: %w", what, err)
	}
	return l, nil
}

// listenAlone makes a socket that was never accessible to other users.
func listenAlone(path string) (net.Listener, error) {
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return net.Listen("unix", path)
}
