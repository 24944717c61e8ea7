package container

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/sandbox"
)

// Exec starts the process that a client asks for, with its descriptors or a terminal.
func (x *Container) Exec(s *sandbox.Sandbox, req *wire.ExecRequest, files []*os.File) (ExecProcess, *ExecStdio, *wire.Error) {
	p := x.newProcess(req.Args, execEnv(x.env, req), x.Plan.Cwd)
	if err := x.setUser(s, p, req.User); err != nil {
		return nil, nil, &wire.Error{Message: err.Error(), Code: 125}
	}
	if req.Cwd != "" {
		p.Cwd = req.Cwd
	}
	attached, err := attachStdio(p, req, files)
	if err != nil {
		return nil, nil, &wire.Error{Message: err.Error(), Code: 125}
	}
	run, err := x.startProcess(context.Background(), p)
	if err != nil {
		attached.closeSockets()
		return nil, nil, execError(req, err)
	}
	return run, &attached, nil
}

// setUser makes a process in a container another user's, if that is asked for.
func (x *Container) setUser(s *sandbox.Sandbox, p *libcontainer.Process, user string) error {
	if user == "" {
		return nil
	}
	as := *x.Plan
	as.User, as.NonRoot = user, false // who asks is whose pod it is
	who, err := resolveUser(x.Rootfs(s), &as, s.IDMapped)
	p.UID, p.GID, p.AdditionalGroups = who.uid, who.gid, who.groups
	return err
}

// ServeClient obeys the client while its process runs, and ends the process with it, unless the
// client wants it to go on.
func (a *ExecStdio) ServeClient(conn *net.UnixConn, p ExecProcess) {
	for {
		msg, err := wire.ReadControl(conn)
		if err != nil {
			p.Signal(unix.SIGKILL) // the client has gone; a process that has ended is fine
			return
		}
		if msg.Detach && a.master != nil {
			io.Copy(io.Discard, a.master) // somebody has to read what it says
			return
		}
		if msg.Signal > 0 {
			p.Signal(syscall.Signal(msg.Signal))
		}
	}
}

// ExitCode waits for the end of a process and gives its exit code.
func ExitCode(p ExecProcess) int {
	status, err := p.Wait()
	switch {
	case err != nil:
		return 255
	case status.Signaled():
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// execEnv is the container's environment with the request's, which wins.
func execEnv(env []string, req *wire.ExecRequest) []string {
	out := slices.Clone(env)
	extra := req.Env
	if req.TTY {
		term := req.Term
		if term == "" {
			term = "xterm"
		}
		extra = append([]string{"TERM=" + term}, extra...)
	}
	for _, kv := range extra {
		key, _, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(have string) bool { return strings.HasPrefix(have, key+"=") })
		out = append(out, kv)
	}
	return out
}

func execError(req *wire.ExecRequest, err error) *wire.Error {
	code := startExitCode(err)
	if code == 128 {
		code = 125
	}
	return &wire.Error{Message: fmt.Sprintf("run %q in container %s: %v", req.Args[0], req.Container, plainError(err)), Code: code}
}
