package podinit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// Prespawn is a pod's first process that was started before its pod is known, and perhaps for no
// pod at all. It enters the user namespace, which takes as long as reading a manifest, and waits.
// It ends with its caller and leaves nothing. See nsenter/prespawn.c.
//
// The nil Prespawn is none: the pod's first process is started when the pod is known.
type Prespawn struct {
	cmd    *exec.Cmd
	socket *os.File
	user   *os.File // the user namespace that it joins; nil if it makes one

	ready func() bool
	end   func()
}

// Limits of what message may return. They leave space for what is added later: standard error, and
// the router's descriptor and its number.
const (
	maxMessage      = protocol.MaxPrespawnText - 64
	maxMessageFiles = protocol.MaxPrespawnFiles - 2
)

// StartPrespawn starts a pod's first process with this program. It returns nil if it cannot start
// one; Start reports the reason later. It also returns nil for root, which has no user namespace to
// enter. The caller must call Stop.
func StartPrespawn(program string, dirs store.Dirs) *Prespawn {
	if os.Geteuid() == 0 {
		return nil
	}
	enter := reexec.EnterEnv(protocol.EnterPrespawn)
	user, router, err := findShared(dirs, enter)
	if err != nil {
		return nil
	}
	closeAll(router)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		closeAll(user)
		return nil
	}
	p := &Prespawn{cmd: exec.Command(program, protocol.EntrySupervisor, dirs.Data, dirs.Runtime), socket: os.NewFile(uintptr(pair[0]), "prespawn"), user: user}
	theirs := os.NewFile(uintptr(pair[1]), "prespawn")
	defer theirs.Close()
	p.cmd.Args[0] = "podrun"
	p.cmd.Env = reexec.WithoutSystemd(append(reexec.Environ(), enter...))
	p.cmd.Dir = "/"
	reexec.PassFile(p.cmd, theirs) // protocol.FDPrespawn
	if user != nil {
		reexec.PassFileEnv(p.cmd, protocol.EnvUserNS, user)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from the pod
	if err := p.cmd.Start(); err != nil {
		closeAll(user, p.socket)
		return nil
	}
	p.ready = sync.OnceValue(func() bool {
		n, _ := p.socket.Read(make([]byte, 1))
		return n == 1
	})
	p.end = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill() // fails if it has already exited: a pod uses it
		_ = p.cmd.Wait()
		closeAll(p.socket, p.user)
	})
	return p
}

// Pids waits until the process is ready, when it has no children, and returns its pid: a check for
// foreign processes in a cgroup must not count it. The result is empty if the process could not enter
// the namespace.
func (p *Prespawn) Pids() []int {
	if p == nil || !p.ready() {
		return nil
	}
	return []int{p.cmd.Process.Pid}
}

// Stop ends the process if no pod has used it. It may be called again.
func (p *Prespawn) Stop() {
	if p != nil {
		p.end()
	}
}

// usableFor reports whether the process can become the process that cmd would start. It can if it has
// joined the user namespace that the pods share, or if no pod is alive.
func (p *Prespawn) usableFor(cmd *exec.Cmd, user *os.File) bool {
	if p == nil || !p.ready() || !p.alive() || (p.user == nil) != (user == nil) {
		return false
	}
	if user != nil && !sameFile(p.user, user) {
		return false
	}
	words := p.message(cmd)
	for _, changed := range []string{protocol.EnvUIDMap, protocol.EnvGIDMap} {
		if strings.Contains(words, "\x00"+changed+"=") { // the user's ids have changed since
			return false
		}
	}
	return len(words) <= maxMessage && len(cmd.ExtraFiles) <= maxMessageFiles
}

// alive reports whether the process, which was ready, is still alive and not killed.
func (p *Prespawn) alive() bool {
	_, _, err := unix.Recvfrom(int(p.socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return errors.Is(err, unix.EAGAIN)
}

func sameFile(a, b *os.File) bool {
	ai, aerr := a.Stat()
	bi, berr := b.Stat()
	return errors.Join(aerr, berr) == nil && os.SameFile(ai, bi)
}

// message returns what the process must receive to become the process that cmd would start.
func (p *Prespawn) message(cmd *exec.Cmd) string {
	words := slices.Concat([]string{cmd.Path}, cmd.Args, []string{""})
	for _, v := range cmd.Env {
		if !slices.Contains(p.cmd.Env, v) {
			words = append(words, v)
		}
	}
	return strings.Join(words, "\x00") + "\x00"
}

// start makes the process become the process that cmd would run, calls started, and waits for its end.
func (p *Prespawn) start(cmd *exec.Cmd, started func()) error {
	var fds []int
	for _, f := range append([]*os.File{cmd.Stderr.(*os.File)}, cmd.ExtraFiles...) {
		fds = append(fds, int(f.Fd()))
	}
	if err := unix.Sendmsg(int(p.socket.Fd()), []byte(p.message(cmd)), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send the pod's description to its first process: %w", err)
	}
	started()
	return p.cmd.Wait()
}
