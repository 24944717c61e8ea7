package podinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// First is the first process of a pod. It enters the user namespace, which takes as long as reading a manifest, and
// waits for the pod, which may not be known yet, or never be. It ends with its caller and leaves nothing. See
// nsenter/first.c.
//
// The nil First is none: Start starts one when the pod is known.
type First struct {
	cmd    *exec.Cmd
	socket *os.File
	ids    []string    // reexec.IDEnv
	user   os.FileInfo // the user namespace that it joins; nil if it makes one

	ready func() error
	end   func()
}

// StartFirst starts the first process of a pod that is not known yet. program is the pod program. It returns nil if it
// cannot start one; Start reports the reason later. It also returns nil for root, which has no user namespace to
// enter. The caller must call Stop.
func StartFirst(program string, dirs store.Dirs) *First {
	if os.Geteuid() == 0 {
		return nil
	}
	ids := reexec.IDEnv()
	user, router, err := findShared(dirs, ids)
	if err != nil {
		return nil
	}
	defer closeAll(user, router)
	f, err := startFirst(program, dirs, ids, user)
	if err != nil {
		return nil
	}
	return f
}

// startFirst starts a first process with ids. user is the user namespace that it joins; nil if it makes one.
func startFirst(program string, dirs store.Dirs, ids []string, user *os.File) (*First, error) {
	joined, err := identity(user)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	f := &First{cmd: exec.Command(program, protocol.EntrySupervisor, dirs.Data, dirs.Runtime), socket: os.NewFile(uintptr(pair[0]), "first process"), ids: ids, user: joined}
	theirs := os.NewFile(uintptr(pair[1]), "first process")
	defer theirs.Close()
	f.cmd.Args[0] = "podrun" // the others are for those who list processes
	f.cmd.Env = reexec.WithoutSystemd(slices.Concat(reexec.Environ(), []string{protocol.EnvEnter + "=" + protocol.EnterFirst}, ids))
	f.cmd.Dir = "/"
	reexec.PassFile(f.cmd, theirs) // protocol.FDFirst
	if user != nil {
		reexec.PassFileEnv(f.cmd, protocol.EnvUserNS, user)
	}
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from the pod
	if err := f.cmd.Start(); err != nil {
		f.socket.Close()
		return nil, fmt.Errorf("start the pod program: %w", err)
	}
	f.ready = sync.OnceValue(func() error {
		b := make([]byte, 1)
		if n, _ := f.socket.Read(b); n == 1 && b[0] == 'x' {
			return nil
		}
		rest, _ := io.ReadAll(io.LimitReader(f.socket, maxReport)) // the process ends
		if text := strings.TrimSpace(string(b) + string(rest)); len(rest) > 0 {
			return errors.New(text)
		}
		return errors.New("its first process has ended")
	})
	f.end = sync.OnceFunc(func() {
		_ = f.cmd.Process.Kill() // fails if it has already exited: a pod uses it
		_ = f.cmd.Wait()
		f.socket.Close()
	})
	return f, nil
}

// Pids waits until the process is ready, when it has no children, and returns its pid: a check for
// foreign processes in a cgroup must not count it. The result is empty if the process could not enter
// the namespace.
func (f *First) Pids() []int {
	if f == nil || f.ready() != nil {
		return nil
	}
	return []int{f.cmd.Process.Pid}
}

// Stop ends the process if no pod has used it. It may be called again.
func (f *First) Stop() {
	if f != nil {
		f.end()
	}
}

// usableFor reports whether the process can become the first one of a pod with ids, which may have changed since. It can if it has
// joined the user namespace that the pods share, or if no pod is alive.
func (f *First) usableFor(ids []string, user *os.File) bool {
	if f == nil || !slices.Equal(f.ids, ids) || f.ready() != nil || !f.alive() {
		return false
	}
	shared, err := identity(user)
	return err == nil && (shared == nil) == (f.user == nil) && (shared == nil || os.SameFile(shared, f.user))
}

// alive reports whether the process, which was ready, is still alive and not killed.
func (f *First) alive() bool {
	_, _, err := unix.Recvfrom(int(f.socket.Fd()), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return errors.Is(err, unix.EAGAIN)
}

// identity returns what identifies a user namespace, or nil if there is none.
func identity(user *os.File) (os.FileInfo, error) {
	if user == nil {
		return nil, nil
	}
	return user.Stat()
}

// added returns the variables of env that the process does not have.
func (f *First) added(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return slices.Contains(f.cmd.Env, v) })
}

// run gives the process its pod: the arguments, environment and descriptors of cmd. Then it calls given, and waits for the end of
// the process, which leaves the monitor running.
func (f *First) run(cmd *exec.Cmd, given func()) error {
	files := append([]*os.File{cmd.Stderr.(*os.File)}, cmd.ExtraFiles...)
	for group := range slices.Chunk(files, protocol.MaxFirstFiles) {
		var fds []int
		for _, file := range group {
			fds = append(fds, int(file.Fd()))
		}
		if err := unix.Sendmsg(int(f.socket.Fd()), []byte{'f'}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
			return fmt.Errorf("send the pod's descriptors to its first process: %w", err)
		}
	}
	words := slices.Concat(cmd.Args, []string{""}, f.added(cmd.Env))
	text := strings.Join(words, "\x00") + "\x00"
	message := binary.NativeEndian.AppendUint32([]byte{'t'}, uint32(len(text)))
	if _, err := f.socket.Write(append(message, text...)); err != nil {
		return fmt.Errorf("send the pod's description to its first process: %w", err)
	}
	given()
	err := f.cmd.Wait()
	if reported, _ := io.ReadAll(io.LimitReader(f.socket, maxReport)); len(reported) > 0 {
		return errors.New(strings.TrimSpace(string(reported)))
	}
	return err
}
