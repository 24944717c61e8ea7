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

// Exec starts the process that a client requests, with the client's descriptors or a terminal.
func (x *Container) Exec(s *sandbox.Sandbox, req *wire.ExecRequest, files []*os.File) (ExecProcess, *ExecStdio, error) {
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

// setUser sets the user of a process in a container if the request names one.
func (x *Container) setUser(s *sandbox.Sandbox, p *libcontainer.Process, user string) error {
	if user == "" {
		return nil
	}
	as := *x.Plan
	as.User, as.NonRoot = user, false // runAsNonRoot does not apply: the client owns the pod
	id, err := resolveUser(x.Rootfs(s), &as, s.IDMapped)
	p.UID, p.GID, p.AdditionalGroups = id.uid, id.gid, id.groups
	return err
}

// ServeClient handles the client's Controls while its process runs. It kills the process when the client
// disconnects, unless the client has sent Detach.
func (a *ExecStdio) ServeClient(conn *net.UnixConn, p ExecProcess) {
	for {
		msg, err := wire.ReadControl(conn)
		if err != nil {
			p.Signal(unix.SIGKILL) // the client has disconnected; an error means that the process has exited
			return
		}
		if msg.Detach && a.master != nil {
			io.Copy(io.Discard, a.master) // the output must be read, or the process blocks
			return
		}
		if msg.Signal > 0 {
			p.Signal(syscall.Signal(msg.Signal))
		}
	}
}

// ExitCode waits until a process exits and returns its exit code.
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

// execEnv returns the container's environment overridden by the request's.
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
