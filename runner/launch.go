package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/stage/trampoline"
)

// launched is a process that runs in a container beside its first one.
type launched interface {
	Pid() (int, error)
	Signal(os.Signal) error
	Wait() (syscall.WaitStatus, error)
}

// theirs is a process that libcontainer has made.
type theirs struct{ *libcontainer.Process }

func (p theirs) Wait() (syscall.WaitStatus, error) {
	if pid, err := p.Pid(); err == nil {
		awaitEnd(pid)
	}
	st, err := p.Process.Wait()
	if st == nil {
		return 0, err
	}
	return st.Sys().(syscall.WaitStatus), nil // the error repeats the state
}

// launch runs a process in a container that runs, and returns when it has executed its
// program: by the trampoline where that is provably the same as by libcontainer, which
// takes ten times as long.
func (x *container) launch(ctx context.Context, p *libcontainer.Process) (launched, error) {
	if err := x.freezer.enter(ctx); err != nil {
		return nil, err
	}
	defer x.freezer.leave()
	if err := x.labelStreams(p); err != nil {
		return nil, err
	}
	config := x.ct.Config()
	if x.confinement.by != nil && joinable(&config, p) {
		made, err := x.join(ctx, &config, p)
		if !errors.Is(err, trampoline.ErrCgroup) { // libcontainer knows more ways into one
			if err != nil {
				return nil, err
			}
			return made, nil
		}
	}
	b, err := x.confinement.bounce(p)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := x.ct.Run(p); err != nil {
		x.reapStillborn()
		return nil, err
	}
	if err := b.Started(ctx); err != nil {
		p.Signal(unix.SIGKILL)
		p.Wait()
		return nil, err
	}
	return theirs{p}, nil
}

// joinable says whether a process needs nothing of libcontainer's that the trampoline does
// not do.
func joinable(c *configs.Config, p *libcontainer.Process) bool {
	return p.ConsoleSocket == nil && len(p.ExtraFiles) == 0 && p.Capabilities.Inheritable == nil && p.Capabilities.Ambient == nil &&
		slices.Equal(p.Capabilities.Effective, p.Capabilities.Permitted) && len(p.AdditionalGroups) <= trampoline.MaxGroups &&
		c.Seccomp == nil && c.NoNewKeyring && !c.RootlessEUID && !c.Namespaces.Contains(configs.NEWUSER) && !c.Namespaces.Contains(configs.NEWTIME) &&
		c.AppArmorProfile == "" && c.ProcessLabel == "" && c.Personality == nil && c.Umask == nil && c.Scheduler == nil && c.IOPriority == nil &&
		c.ExecCPUAffinity == nil && c.IntelRdt == nil && c.MemoryPolicy == nil && inKnownCgroup(c)
}

// inKnownCgroup says whether the container is in the one cgroup that its configuration names,
// or in none. Root's may be in those that libcontainer has made beside its own.
func inKnownCgroup(c *configs.Config) bool {
	if c.Cgroups.Path == "" {
		return !mapsRoot()
	}
	return unified()
}

// unified says whether there is one hierarchy of cgroups.
var unified = sync.OnceValue(func() bool {
	var st unix.Statfs_t
	return unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
})

const cgroupRoot = "/sys/fs/cgroup"

// join has the trampoline make a process in the container.
func (x *container) join(ctx context.Context, config *configs.Config, p *libcontainer.Process) (*trampoline.Process, error) {
	j := &trampoline.Joining{Order: *x.confinement.order(p), Args: p.Args}
	j.SetGroups, j.OOMScore = groupsAllowed(), config.OomScoreAdj
	for _, l := range config.Rlimits {
		j.Limits = append(j.Limits, trampoline.Limit{Type: l.Type, Soft: l.Soft, Hard: l.Hard})
	}
	for _, ns := range config.Namespaces {
		j.Namespaces |= uintptr(ns.Syscall())
	}
	var err error
	if j.Env, err = x.environment(p); err != nil {
		return nil, err
	}
	var opened []*os.File
	defer func() { closeFiles(opened...) }()
	open := func(path string, flags int) (*os.File, error) { // not as a file that the runtime could wait for
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		f := os.NewFile(uintptr(fd), path)
		opened = append(opened, f)
		return f, nil
	}
	for i, stream := range []any{p.Stdin, p.Stdout, p.Stderr} {
		if f, ok := stream.(*os.File); ok {
			j.Stdio[i] = f
		} else if j.Stdio[i], err = open(os.DevNull, unix.O_RDWR); err != nil {
			return nil, err
		}
	}
	if config.Cgroups.Path != "" {
		if j.Cgroup, err = open(filepath.Join(cgroupRoot, config.Cgroups.Path), unix.O_PATH|unix.O_DIRECTORY); err != nil {
			return nil, errors.Join(trampoline.ErrCgroup, err)
		}
	}
	if j.Target, err = x.entry.open(x.process); err != nil {
		return nil, err
	}
	defer j.Target.Close()
	return x.confinement.by.Join(ctx, j)
}

// entry is by what commands get into a container: a pidfd of its first process, found once.
type entry struct {
	mu   sync.Mutex
	file *os.File
}

// open gives a pidfd of a process, and of no other that has its number, of the caller's own:
// the container may go while a command is made.
func (e *entry) open(p process) (*os.File, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if err != nil {
			return nil, fmt.Errorf("open the container's process: %w", err)
		}
		if st, ok := stat(p.PID); !ok || st.process != p {
			unix.Close(fd)
			return nil, errors.New("the container's process has ended")
		}
		e.file = os.NewFile(uintptr(fd), "container")
	}
	own, err := unix.FcntlInt(e.file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("open the container's process: %w", err)
	}
	return os.NewFile(uintptr(own), "container"), nil
}

// close is for when no command gets into the container any more.
func (e *entry) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.file.Close() // nil is fine
	e.file = nil
}

// environment is a process's as libcontainer would hand it over: of variables that are
// there twice the last, and HOME, if there is none, of the container's passwd file.
func (x *container) environment(p *libcontainer.Process) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, kv := range slices.Backward(p.Env) {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" || strings.Contains(kv, "\x00") {
			return nil, fmt.Errorf("%q is no environment variable: want NAME=VALUE", key)
		}
		if seen[key] || key == "HOME" && value == "" {
			continue
		}
		seen[key] = true
		out = append(out, kv)
	}
	slices.Reverse(out)
	if !seen["HOME"] {
		out = append(out, "HOME="+x.confinement.homes.of(x.PID, p.UID))
	}
	return out, nil
}
