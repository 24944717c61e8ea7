package container

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// pinMountNamespace keeps the mount namespace of a container in a shared PID namespace open while processes
// are compared with it. The kernel reuses the inode number of a deleted namespace: without the pin the number
// could belong to a container that is being made.
func (x *Container) pinMountNamespace(s *sandbox.Sandbox) bool {
	return x.sharesPIDNamespace(s) && x.pinMountNamespaceOf(x.PID)
}

// sharesPIDNamespace reports whether a container is in a PID namespace that is not its own.
func (x *Container) sharesPIDNamespace(s *sandbox.Sandbox) bool {
	return s.PauseProcess.PID != 0 || x.Plan.Target != "" || s.Plan.HostPID
}

// findMountNamespace pins the mount namespace of an instance that an earlier supervisor started. If its first
// process has exited, any other process of the instance serves. If there is none, or the number belongs to
// another container by now, nothing is left of the instance.
func (x *Container) findMountNamespace(s *sandbox.Sandbox, others []handoff.RunningInstance) {
	if st, ok := procfs.Lookup(x.PID); ok && st.Process == x.Process && x.pinMountNamespace(s) {
		return
	}
	namespace, err := os.Readlink("/proc/self/ns/mnt")
	if !x.sharesPIDNamespace(s) || err != nil || namespace == x.mntns || reusedByOther(x, others) {
		return
	}
	procfs.Each(func(pid int) {
		if x.mntnsFile == nil {
			x.pinMountNamespaceOf(pid)
		}
	})
}

// reusedByOther reports whether another container's mount namespace has the number of x's.
func reusedByOther(x *Container, others []handoff.RunningInstance) bool {
	return slices.ContainsFunc(others, func(r handoff.RunningInstance) bool {
		return r.Process != x.Process && r.MountNS == x.mntns && r.StartTime >= x.StartTime
	})
}

// pinMountNamespaceOf pins the mount namespace of a process if it is the container's.
func (x *Container) pinMountNamespaceOf(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return false
	}
	if ns, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil || ns != x.mntns {
		f.Close()
		return false
	}
	x.mntnsFile = f
	return true
}

// killByMountNamespace kills what is left of a container in a shared PID namespace, or in the host's: every
// process in its mount namespace, until there is none. In a container's own PID namespace the kernel does that.
func (x *Container) killByMountNamespace() {
	if x.mntnsFile == nil {
		return
	}
	procfs.KillAll(func(pid int) bool { return killInMountNamespace(pid, x.mntns) })
	x.mntnsFile.Close()
	x.mntnsFile = nil
}

// killInMountNamespace kills pid and waits for its exit if its mount namespace is mntns. It opens the pidfd
// before it checks, because the number may be reused a moment later.
func killInMountNamespace(pid int, mntns string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil || ns != mntns {
		return false
	}
	return procfs.KillAndWait(fd)
}

// killCgroup kills processes of a container in the host's PID namespace that have also left the container's
// mount namespace, which CAP_SYS_ADMIN allows.
func (x *Container) killCgroup(s *sandbox.Sandbox) {
	if !s.Plan.HostPID || s.Cgroup == nil {
		return
	}
	if err := s.Cgroup.KillContainer(x.Plan.Name); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
