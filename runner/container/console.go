package container

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

// ExecStdio connects an exec's process to its client: by the client's three pipes, or by a terminal whose
// master the client receives.
type ExecStdio struct {
	local, remote *os.File // the socket pair on which libcontainer sends the master; nil without a terminal
	master        *os.File // the terminal's master, once received; read here after a Detach
}

func attachStdio(p *libcontainer.Process, req *wire.ExecRequest, files []*os.File) (ExecStdio, error) {
	if len(req.Args) == 0 {
		return ExecStdio{}, errors.New("no command to run")
	}
	if !req.TTY {
		if len(files) != 3 {
			return ExecStdio{}, fmt.Errorf("an exec needs 3 descriptors, %d came", len(files))
		}
		p.Stdin, p.Stdout, p.Stderr = files[0], files[1], files[2]
		return ExecStdio{}, nil
	}
	a, err := newConsole(p)
	if err != nil {
		return ExecStdio{}, err
	}
	p.ConsoleWidth, p.ConsoleHeight = req.Cols, req.Rows
	return a, nil
}

// newConsole requests a terminal for the process. receiveMaster then receives its master.
func newConsole(p *libcontainer.Process) (ExecStdio, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ExecStdio{}, fmt.Errorf("make console socket: %w", err)
	}
	a := ExecStdio{local: os.NewFile(uintptr(pair[0]), "console"), remote: os.NewFile(uintptr(pair[1]), "console")}
	p.ConsoleSocket = a.remote
	return a, nil
}

func (a ExecStdio) closeSockets() {
	if a.local != nil {
		a.local.Close()
		a.remote.Close()
	}
}

// Started notifies the client that its process runs, and sends it the terminal's master. The client resizes
// the terminal itself.
func (a *ExecStdio) Started(conn *net.UnixConn) error {
	defer a.closeSockets()
	if a.local == nil {
		return wire.WriteFrame(conn, wire.Frame{Started: true})
	}
	var err error
	if a.master, err = receiveMaster(a.local); err != nil {
		return err
	}
	return wire.WriteFrame(conn, wire.Frame{Started: true}, a.master)
}

// Close closes the terminal of a process that has exited.
func (a *ExecStdio) Close() {
	if a.master != nil {
		a.master.Close()
	}
}

// receiveMaster receives the terminal's master, which libcontainer's init sends before its process runs.
func receiveMaster(socket *os.File) (*os.File, error) {
	name, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(socket.Fd()), name, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive terminal: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("receive terminal: %d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("receive terminal: %d descriptors: %w", len(fds), err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // for all processes that share the file
		unix.Close(fds[0])
		return nil, fmt.Errorf("receive terminal: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}
