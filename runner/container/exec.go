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

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/rawsys"
	"github.com/podrun/podrun/runner/sandbox"
)

// ExecProcess is a process in a container, other than its first one.
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

// startProcess runs a process in a running container and returns when it has executed its program. The exec
// shim makes the process where the result is provably the same, because libcontainer takes ten times as long.
func (x *Container) startProcess(ctx context.Context, p *libcontainer.Process) (ExecProcess, error) {
	if err := x.freezer.Acquire(ctx); err != nil {
		return nil, err
	}
	defer x.freezer.Release()
	if err := x.labelStreams(p); err != nil {
		return nil, err
	}
	config := x.Libcontainer.Config()
	if x.confinement.program != nil && shimCanExec(&config, p) {
		made, err := x.execByShim(ctx, &config, p)
		if !errors.Is(err, execshim.ErrCgroup) { // libcontainer has more ways into a cgroup
			if err != nil {
				return nil, err
			}
			return made, nil
		}
	}
	init, err := x.confinement.wrapInit(p)
	if err != nil {
		return nil, err
	}
	defer init.Close()
	if err := init.Proceed(); err != nil {
		return nil, err
	}
	if err := startWrapped(init, func() error { return x.Libcontainer.Run(p) }); err != nil {
		x.reapFailedExec()
		return nil, err
	}
	if err := init.Started(ctx); err != nil {
		p.Signal(unix.SIGKILL)
		p.Wait()
		return nil, err
	}
	return libcontainerProcess{p}, nil
}

// shimCanExec reports whether a process needs nothing that only libcontainer does.
func shimCanExec(c *configs.Config, p *libcontainer.Process) bool {
	caps := p.Capabilities
	return p.ConsoleSocket == nil && len(p.ExtraFiles) == 0 && len(p.AdditionalGroups) <= protocol.MaxShimGroups &&
		caps.Inheritable == nil && caps.Ambient == nil && slices.Equal(caps.Effective, caps.Permitted) &&
		shimCanEnter(c) && inSingleCgroup(c)
}

// shimCanEnter reports whether the exec shim can give a process all properties of a container's processes.
func shimCanEnter(c *configs.Config) bool {
	return c.Seccomp == nil && c.NoNewKeyring && !c.RootlessEUID && !c.Namespaces.Contains(configs.NEWUSER) && !c.Namespaces.Contains(configs.NEWTIME) &&
		c.AppArmorProfile == "" && c.ProcessLabel == "" && c.Personality == nil && c.Umask == nil && c.Scheduler == nil && c.IOPriority == nil &&
		c.ExecCPUAffinity == nil && c.IntelRdt == nil && c.MemoryPolicy == nil
}

// inSingleCgroup reports whether the container is in the one cgroup that its configuration names, or in none.
// If root runs podrun, libcontainer may have put it into other cgroups, too.
func inSingleCgroup(c *configs.Config) bool {
	if c.Cgroups.Path == "" {
		return !sandbox.RootIsHostRoot()
	}
	return cgroup2Only()
}

// cgroup2Only reports whether the host has only the unified cgroup hierarchy.
var cgroup2Only = sync.OnceValue(func() bool {
	var st unix.Statfs_t
	return unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
})

const cgroupRoot = "/sys/fs/cgroup"

// cgroupOf returns the directory of a container's cgroup, or "".
func cgroupOf(c *configs.Config) string {
	if c.Cgroups.Path == "" {
		return ""
	}
	return filepath.Join(cgroupRoot, c.Cgroups.Path)
}

// shimExec returns the exec shim's configuration of a process in the container, without its files.
func (x *Container) shimExec(config *configs.Config, p *libcontainer.Process) (j *execshim.ExecConfig, err error) {
	j = &execshim.ExecConfig{Config: *x.confinement.shimConfig(p), Args: p.Args}
	j.SetGroups, j.OOMScore = sandbox.SetgroupsAllowed(), config.OomScoreAdj
	for _, l := range config.Rlimits {
		j.Limits = append(j.Limits, execshim.Limit{Type: l.Type, Soft: l.Soft, Hard: l.Hard})
	}
	for _, ns := range config.Namespaces {
		j.Namespaces |= uintptr(ns.Syscall())
	}
	j.Env, err = x.processEnv(p)
	return j, err
}

// execByShim lets the exec shim make a process in the container.
func (x *Container) execByShim(ctx context.Context, config *configs.Config, p *libcontainer.Process) (*execshim.Process, error) {
	j, err := x.shimExec(config, p)
	if err != nil {
		return nil, err
	}
	var opened []*os.File
	defer func() { CloseFiles(opened...) }()
	open := func(path string, flags int) (*os.File, error) {
		fd, err := rawsys.Open(path, flags)
		if err != nil {
			return nil, err
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
	if path := cgroupOf(config); path != "" {
		if j.Cgroup, err = open(path, unix.O_PATH|unix.O_DIRECTORY); err != nil {
			return nil, errors.Join(execshim.ErrCgroup, err)
		}
	}
	if j.Target, err = x.pidfd.open(x.Process); err != nil {
		return nil, err
	}
	defer j.Target.Close()
	return x.confinement.program.Exec(ctx, j)
}

// pidfdCache caches the pidfd of a container's first process, through which commands enter the container.
type pidfdCache struct {
	mu   sync.Mutex
	file *os.File
}

// open returns the caller's own pidfd of exactly this process, never of another process with the same number.
// The pidfd stays valid if the container is removed while a command is made.
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
	duplicate, err := unix.FcntlInt(e.file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("open the container's process: %w", err)
	}
	return os.NewFile(uintptr(duplicate), "container"), nil
}

// close closes the cached pidfd when no more commands enter the container.
func (e *pidfdCache) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.file.Close() // nil is allowed
	e.file = nil
}

// processEnv returns a process's environment as libcontainer would pass it. Of duplicate variables it has the
// last; a missing HOME comes from the container's passwd file.
func (x *Container) processEnv(p *libcontainer.Process) ([]string, error) {
	var out []string
	names := map[string]bool{}
	for _, kv := range slices.Backward(p.Env) {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || key == "" || strings.Contains(kv, "\x00") {
			return nil, fmt.Errorf("%q is not an environment variable: want NAME=VALUE", key)
		}
		if names[key] || key == "HOME" && value == "" {
			continue
		}
		names[key] = true
		out = append(out, kv)
	}
	slices.Reverse(out)
	if !names["HOME"] {
		out = append(out, "HOME="+x.confinement.homes.lookup(x.PID, p.UID))
	}
	return out, nil
}

// reapFailedExec reaps what libcontainer leaves of a command, if the container has exited during the command's
// start: libcontainer waits only for the first of nsexec's three processes. The container's first process does
// not end before all processes in its PID namespace are reaped.
func (x *Container) reapFailedExec() {
	if first, ok := procfs.Lookup(x.PID); !ok || !first.Exiting || first.Process != x.Process {
		return // the container runs, or nothing is left of it
	}
	ns, err := os.Readlink(pidNamespace(x.PID))
	isInit := err == nil && isNamespaceInit(x.PID)
	for _, pid := range childPIDs() {
		st, ok := procfs.Lookup(pid)
		if !ok || !st.Exiting || pid == x.PID {
			continue
		}
		switch st.Comm {
		case "runc:[1:CHILD]":
		case "runc:[2:INIT]": // in a PID namespace that is not the container's own it may be a first process
			if of, err := os.Readlink(pidNamespace(pid)); !isInit || err != nil || of != ns {
				continue
			}
		default:
			continue
		}
		_, _ = unix.Wait4(pid, nil, 0, nil) // an error means that it was reaped already
	}
}

func pidNamespace(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }

// isNamespaceInit reports whether a process is the first of its PID namespace.
func isNamespaceInit(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, numbers, _ := strings.Cut(string(b), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	return strings.HasSuffix(numbers, "\t1")
}

// childPIDs returns the children of this process.
func childPIDs() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list) // empty for a thread that has ended
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
