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

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/store"
)

// Prespawn is a pod's first process that was begun before it was known which pod it is to be of, if
// there is to be one: it enters the user namespace, which takes as long as a manifest to be read,
// and waits. It ends with its caller and leaves nothing. See nsenter/prespawn.c.
//
// The nil Ahead is none: the pod's first process is begun when the pod is known.
type Prespawn struct {
	cmd    *exec.Cmd
	socket *os.File
	user   *os.File // the user namespace that it joins; nil if it makes one

	ready func() bool
	end   func()
}

// What a message of nsenter/prespawn.c holds at the most, less room for standard error and the router's
// descriptor and its number.
const (
	maxMessage      = 32768 - 64
	maxMessageFiles = 128 - 2
)

// StartPrespawn begins a pod's first process, of this program, or returns nil where it cannot be
// begun: Start will say why. The caller ends it. For root there is nothing to enter.
func StartPrespawn(program string, dirs store.Dirs) *Prespawn {
	if os.Geteuid() == 0 {
		return nil
	}
	enter := reexec.EnterEnv("prespawn")
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
	a := &Prespawn{cmd: exec.Command(program, reexec.Supervisor, dirs.Data, dirs.Runtime), socket: os.NewFile(uintptr(pair[0]), "prespawn"), user: user}
	theirs := os.NewFile(uintptr(pair[1]), "prespawn")
	defer theirs.Close()
	a.cmd.Args[0] = "podrun"
	a.cmd.Env = reexec.WithoutSystemd(append(reexec.Environ(), enter...))
	a.cmd.Dir = "/"
	a.cmd.ExtraFiles = []*os.File{theirs} // PODRUN_PRESPAWN_FD of nsenter/nsenter.h
	if user != nil {
		a.cmd.Env = append(a.cmd.Env, fmt.Sprintf("_PODRUN_USERNS=%d", 3+len(a.cmd.ExtraFiles)))
		a.cmd.ExtraFiles = append(a.cmd.ExtraFiles, user)
	}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for the pod
	if err := a.cmd.Start(); err != nil {
		closeAll(user, a.socket)
		return nil
	}
	a.ready = sync.OnceValue(func() bool {
		n, _ := a.socket.Read(make([]byte, 1))
		return n == 1
	})
	a.end = sync.OnceFunc(func() {
		_ = a.cmd.Process.Kill() // it fails if it has become a pod's
		_ = a.cmd.Wait()
		closeAll(a.socket, a.user)
	})
	return a
}

// Pids are the process, once it waits, for those who ask what lives in a cgroup: it has no
// children then. Where it could not enter the namespace there is none.
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

// usableFor says whether the process can become the one that cmd would start, where pods share the
// user namespace, or none lives.
func (a *Prespawn) usableFor(cmd *exec.Cmd, user *os.File) bool {
	if a == nil || !a.ready() || !a.alive() || (a.user == nil) != (user == nil) {
		return false
	}
	if user != nil && !sameFile(a.user, user) {
		return false
	}
	words := a.message(cmd)
	for _, changed := range []string{"\x00_PODRUN_UIDMAP=", "\x00_PODRUN_GIDMAP="} {
		if strings.Contains(words, changed) { // the user has other ids by now
			return false
		}
	}
	return len(words) <= maxMessage && len(cmd.ExtraFiles) <= maxMessageFiles
}

// alive says whether the process, which was ready, still is: nobody has killed it.
func (a *Prespawn) alive() bool {
	_, _, err := unix.Recvfrom(int(a.socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return errors.Is(err, unix.EAGAIN)
}

func sameFile(a, b *os.File) bool {
	ai, aerr := a.Stat()
	bi, berr := b.Stat()
	return errors.Join(aerr, berr) == nil && os.SameFile(ai, bi)
}

// message are what the process has to be told to become the one that cmd would start.
func (a *Prespawn) message(cmd *exec.Cmd) string {
	words := slices.Concat([]string{cmd.Path}, cmd.Args, []string{""})
	for _, v := range cmd.Env {
		if !slices.Contains(a.cmd.Env, v) {
			words = append(words, v)
		}
	}
	return strings.Join(words, "\x00") + "\x00"
}

// start has the process become the one that cmd would run, and waits for its end.
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
