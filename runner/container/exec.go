package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/trampoline"
	"github.com/podrun/podrun/runner/sandbox"
)

// ExecProcess is a process that runs in a container beside its first one.
type ExecProcess interface {
	Pid() (int, error)
	Signal(os.Signal) error
	Wait() (syscall.WaitStatus, error)
}

// libcontainerProcess is a process that libcontainer has made.
type libcontainerProcess struct{ *libcontainer.Process }

func (p libcontainerProcess) Wait() (syscall.WaitStatus, error) {
	if pid, err := p.Pid(); err == nil {
		procfs.AwaitExit(pid)
	}
	st, err := p.Process.Wait()
	if st == nil {
		return 0, err
	}
	return st.Sys().(syscall.WaitStatus), nil // the error repeats the state
}

// startProcess runs a process in a container that runs, and returns when it has executed its
// program: by the trampoline where that is provably the same as by libcontainer, which
// takes ten times as long.
func (x *Container) startProcess(ctx context.Context, p *libcontainer.Process) (ExecProcess, error) {
	if err := x.freezer.Acquire(ctx); err != nil {
		return nil, err
	}
	defer x.freezer.Release()
	if err := x.labelStreams(p); err != nil {
		return nil, err
	}
	config := x.Libcontainer.Config()
	if x.confinement.program != nil && trampolineCanExec(&config, p) {
		made, err := x.execByTrampoline(ctx, &config, p)
		if !errors.Is(err, trampoline.ErrCgroup) { // libcontainer knows more ways into one
			if err != nil {
				return nil, err
			}
			return made, nil
		}
	}
	b, err := x.confinement.wrapInit(p)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := x.Libcontainer.Run(p); err != nil {
		x.reapFailedExec()
		return nil, err
	}
	if err := b.Started(ctx); err != nil {
		p.Signal(unix.SIGKILL)
		p.Wait()
		return nil, err
	}
	return libcontainerProcess{p}, nil
}

// trampolineCanExec says whether a process needs nothing of libcontainer's that the trampoline does
// not do.
func trampolineCanExec(c *configs.Config, p *libcontainer.Process) bool {
	return p.ConsoleSocket == nil && len(p.ExtraFiles) == 0 && p.Capabilities.Inheritable == nil && p.Capabilities.Ambient == nil &&
		slices.Equal(p.Capabilities.Effective, p.Capabilities.Permitted) && len(p.AdditionalGroups) <= trampoline.MaxGroups &&
		c.Seccomp == nil && c.NoNewKeyring && !c.RootlessEUID && !c.Namespaces.Contains(configs.NEWUSER) && !c.Namespaces.Contains(configs.NEWTIME) &&
		c.AppArmorProfile == "" && c.ProcessLabel == "" && c.Personality == nil && c.Umask == nil && c.Scheduler == nil && c.IOPriority == nil &&
		c.ExecCPUAffinity == nil && c.IntelRdt == nil && c.MemoryPolicy == nil && inSingleCgroup(c)
}

// inSingleCgroup says whether the container is in the one cgroup that its configuration names,
// or in none. Root's may be in those that libcontainer has made beside its own.
func inSingleCgroup(c *configs.Config) bool {
	if c.Cgroups.Path == "" {
		return !sandbox.RootIsHostRoot()
	}
	return cgroup2Only()
}

// cgroup2Only says whether there is one hierarchy of cgroups.
var cgroup2Only = sync.OnceValue(func() bool {
	var st unix.Statfs_t
	return unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
})

const cgroupRoot = "/sys/fs/cgroup"

// execByTrampoline has the trampoline make a process in the container.
func (x *Container) execByTrampoline(ctx context.Context, config *configs.Config, p *libcontainer.Process) (*trampoline.Process, error) {
	j := &trampoline.ExecConfig{Config: *x.confinement.trampolineConfig(p), Args: p.Args}
	j.SetGroups, j.OOMScore = sandbox.SetgroupsAllowed(), config.OomScoreAdj
	for _, l := range config.Rlimits {
		j.Limits = append(j.Limits, trampoline.Limit{Type: l.Type, Soft: l.Soft, Hard: l.Hard})
	}
	for _, ns := range config.Namespaces {
		j.Namespaces |= uintptr(ns.Syscall())
	}
	var err error
	if j.Env, err = x.processEnv(p); err != nil {
		return nil, err
	}
	var opened []*os.File
	defer func() { CloseFiles(opened...) }()
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
	if j.Target, err = x.pidfd.open(x.Process); err != nil {
		return nil, err
	}
	defer j.Target.Close()
	return x.confinement.program.Exec(ctx, j)
}

// pidfdCache is by what commands get into a container: a pidfd of its first process, found once.
type pidfdCache struct {
	mu   sync.Mutex
	file *os.File
}

// open gives a pidfd of a process, and of no other that has its number, of the caller's own:
// the container may go while a command is made.
func (e *pidfdCache) open(p procfs.Process) (*os.File, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if err != nil {
			return nil, fmt.Errorf("open the container's process: %w", err)
		}
		if st, ok := procfs.Lookup(p.PID); !ok || st.Process != p {
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
func (e *pidfdCache) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.file.Close() // nil is fine
	e.file = nil
}

// processEnv is a process's as libcontainer would hand it over: of variables that are
// there twice the last, and HOME, if there is none, of the container's passwd file.
func (x *Container) processEnv(p *libcontainer.Process) ([]string, error) {
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
		out = append(out, "HOME="+x.confinement.homes.lookup(x.PID, p.UID))
	}
	return out, nil
}

// reapFailedExec reaps what libcontainer leaves of a command whose container has ended before
// it was there: of nsexec's three processes it waits for the first only. A container's PID
// namespace does not end, nor does its first process, before all that were in it are reaped.
func (x *Container) reapFailedExec() {
	if first, ok := procfs.Lookup(x.PID); !ok || !first.Exiting || first.Process != x.Process {
		return // it runs, or nothing is left of it
	}
	ns, err := os.Readlink(pidNamespace(x.PID))
	own := err == nil && isNamespaceInit(x.PID)
	for _, pid := range childPIDs() {
		st, ok := procfs.Lookup(pid)
		if !ok || !st.Exiting || pid == x.PID {
			continue
		}
		switch st.Comm {
		case "runc:[1:CHILD]":
		case "runc:[2:INIT]": // elsewhere it may be a container's first process
			if of, err := os.Readlink(pidNamespace(pid)); !own || err != nil || of != ns {
				continue
			}
		default:
			continue
		}
		_, _ = unix.Wait4(pid, nil, 0, nil) // unless somebody has
	}
}

func pidNamespace(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }

// isNamespaceInit says whether a process is the first of its PID namespace.
func isNamespaceInit(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, numbers, _ := strings.Cut(string(b), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	return strings.HasSuffix(numbers, "\t1")
}

// childPIDs are this process's.
func childPIDs() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list) // none of a thread that has ended
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
