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

// Limits of the message, less room for standard error and for the router's descriptor and its
// number.
const (
	maxMessage      = protocol.MaxPrespawnText - 64
	maxMessageFiles = protocol.MaxPrespawnFiles - 2
)

// StartPrespawn starts a pod's first process with this program. It returns nil if it cannot start
// one; Start reports the reason later. The caller must call Stop. For root there is nothing to
// enter.
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
	a := &Prespawn{cmd: exec.Command(program, protocol.EntrySupervisor, dirs.Data, dirs.Runtime), socket: os.NewFile(uintptr(pair[0]), "prespawn"), user: user}
	theirs := os.NewFile(uintptr(pair[1]), "prespawn")
	defer theirs.Close()
	a.cmd.Args[0] = "podrun"
	a.cmd.Env = reexec.WithoutSystemd(append(reexec.Environ(), enter...))
	a.cmd.Dir = "/"
	reexec.PassFile(a.cmd, theirs) // protocol.FDPrespawn
	if user != nil {
		reexec.PassFileEnv(a.cmd, protocol.EnvUserNS, user)
	}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from the pod
	if err := a.cmd.Start(); err != nil {
		closeAll(user, a.socket)
		return nil
	}
	a.ready = sync.OnceValue(func() bool {
		n, _ := a.socket.Read(make([]byte, 1))
		return n == 1
	})
	a.end = sync.OnceFunc(func() {
		_ = a.cmd.Process.Kill() // fails if it has become a pod's process
		_ = a.cmd.Wait()
		closeAll(a.socket, a.user)
	})
	return a
}

// Pids returns the process, once it waits, for a check of the processes in a cgroup; it has no
// children then. The result is empty if the process could not enter the namespace.
func (a *Prespawn) Pids() []int {
	if a == nil || !a.ready() {
		return nil
	}
	return []int{a.cmd.Process.Pid}
}

// Stop ends a process that has not become a pod's. It may be called again.
func (a *Prespawn) Stop() {
	if a != nil {
		a.end()
	}
}

// usableFor reports whether the process can become the one that cmd would start. It can if it has
// joined the user namespace that the pods share, or if no pod is alive.
func (a *Prespawn) usableFor(cmd *exec.Cmd, user *os.File) bool {
	if a == nil || !a.ready() || !a.alive() || (a.user == nil) != (user == nil) {
		return false
	}
	if user != nil && !sameFile(a.user, user) {
		return false
	}
	words := a.message(cmd)
	for _, changed := range []string{protocol.EnvUIDMap, protocol.EnvGIDMap} {
		if strings.Contains(words, "\x00"+changed+"=") { // the user's ids have changed since
			return false
		}
	}
	return len(words) <= maxMessage && len(cmd.ExtraFiles) <= maxMessageFiles
}

// alive reports whether the process, which was ready, is still alive and not killed.
func (a *Prespawn) alive() bool {
	_, _, err := unix.Recvfrom(int(a.socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return errors.Is(err, unix.EAGAIN)
}

func sameFile(a, b *os.File) bool {
	ai, aerr := a.Stat()
	bi, berr := b.Stat()
	return errors.Join(aerr, berr) == nil && os.SameFile(ai, bi)
}

// message returns what the process must receive to become the one that cmd would start.
func (a *Prespawn) message(cmd *exec.Cmd) string {
	words := slices.Concat([]string{cmd.Path}, cmd.Args, []string{""})
	for _, v := range cmd.Env {
		if !slices.Contains(a.cmd.Env, v) {
			words = append(words, v)
		}
	}
	return strings.Join(words, "\x00") + "\x00"
}

// start makes the process become the one that cmd would run, and waits for its end.
func (a *Prespawn) start(cmd *exec.Cmd) error {
	var fds []int
	for _, f := range append([]*os.File{cmd.Stderr.(*os.File)}, cmd.ExtraFiles...) {
		fds = append(fds, int(f.Fd()))
	}
	if err := unix.Sendmsg(int(a.socket.Fd()), []byte(a.message(cmd)), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send the pod's description to its first process: %w", err)
	}
	return a.cmd.Wait()
}
