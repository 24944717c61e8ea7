package runner

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

// attachment is how an exec's process reaches its client: by the client's three
// pipes, or by a terminal whose master goes to the client.
type attachment struct {
	ours, theirs *os.File // the pair on which libcontainer hands the master over; nil without a terminal
	master       *os.File // once it was handed over: a client may leave the process behind
}

func attach(p *libcontainer.Process, req *wire.ExecRequest, files []*os.File) (attachment, error) {
	if len(req.Args) == 0 {
		return attachment{}, errors.New("no command to run")
	}
	if !req.TTY {
		if len(files) != 3 {
			return attachment{}, fmt.Errorf("an exec needs 3 descriptors, %d came", len(files))
		}
		p.Stdin, p.Stdout, p.Stderr = files[0], files[1], files[2]
		return attachment{}, nil
	}
	a, err := console(p)
	if err != nil {
		return attachment{}, err
	}
	p.ConsoleWidth, p.ConsoleHeight = req.Cols, req.Rows
	return a, nil
}

// console asks for a terminal of the process's own, whose master is to be received.
func console(p *libcontainer.Process) (attachment, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return attachment{}, fmt.Errorf("make console socket: %w", err)
	}
	a := attachment{ours: os.NewFile(uintptr(pair[0]), "console"), theirs: os.NewFile(uintptr(pair[1]), "console")}
	p.ConsoleSocket = a.theirs
	return a, nil
}

func (a attachment) close() {
	if a.ours != nil {
		a.ours.Close()
		a.theirs.Close()
	}
}

// started tells the client that its process runs and hands it the terminal, which
// it resizes by itself.
func (a *attachment) started(conn *net.UnixConn) error {
	defer a.close()
	if a.ours == nil {
		return wire.WriteFrame(conn, wire.Frame{Started: true})
	}
	var err error
	if a.master, err = receiveMaster(a.ours); err != nil {
		return err
	}
	return wire.WriteFrame(conn, wire.Frame{Started: true}, a.master)
}

// leave lets go of the terminal of a process that has ended.
func (a *attachment) leave() {
	if a.master != nil {
		a.master.Close()
	}
}

// receiveMaster takes the terminal's master, which libcontainer's init has sent
// before its process ran.
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
	if err := unix.SetNonblock(fds[0], true); err != nil { // for all who have it
		unix.Close(fds[0])
		return nil, fmt.Errorf("receive terminal: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}
