package runner

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// holdMountNamespace keeps a container's mount namespace, where its PID namespace is
// shared, for as long as others are compared with it: the kernel gives the number of one
// that has gone to the next, which may be of a container that is being made.
func (x *container) holdMountNamespace(s *sandbox) bool {
	return x.sharesProcesses(s) && x.hold(x.PID)
}

// sharesProcesses says whether a container is in a PID namespace that is not its own.
func (x *container) sharesProcesses(s *sandbox) bool {
	return s.pause.PID != 0 || x.plan.Target != "" || s.plan.HostPID
}

// findMountNamespace is holdMountNamespace of a run of an earlier supervisor. Where its
// first process has ended, any other that is left of it will do; if there is none, or the
// number is another's by now, nothing is left of it.
func (x *container) findMountNamespace(s *sandbox, others []savedRun) {
	if st, ok := stat(x.PID); ok && st.process == x.process && x.holdMountNamespace(s) {
		return
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if !x.sharesProcesses(s) || err != nil || own == x.mntns || numberedAgain(x, others) {
		return
	}
	eachProcess(func(pid int) {
		if x.mounts == nil {
			x.hold(pid)
		}
	})
}

// numberedAgain says whether another container's mount namespace has the number of x's.
func numberedAgain(x *container, others []savedRun) bool {
	return slices.ContainsFunc(others, func(r savedRun) bool { return r.process != x.process && r.MountNS == x.mntns && r.Start >= x.Start })
}

// hold keeps the mount namespace of a process, if it is the container's.
func (x *container) hold(pid int) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil {
		return false
	}
	if ns, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil || ns != x.mntns {
		f.Close()
		return false
	}
	x.mounts = f
	return true
}

// killMountNamespace kills what is left of a container in a shared PID namespace, or the host's:
// every process with its mount namespace, until there is none. In a PID namespace
// of its own the kernel does that.
func (x *container) killMountNamespace() {
	if x.mounts == nil {
		return
	}
	killEach(func(pid int) bool { return killMember(pid, x.mntns) })
	x.mounts.Close()
	x.mounts = nil
}

// killMember kills pid and waits for its end, if mntns is its mount namespace.
// The descriptor is opened first: the number may be another process's a moment later.
func killMember(pid int, mntns string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil || ns != mntns {
		return false
	}
	return killAndWait(fd)
}

// killCgroup kills what is left of a container in the host's PID namespace that has left its
// mount namespace, too: what it may with CAP_SYS_ADMIN.
func (x *container) killCgroup(s *sandbox) {
	if !s.plan.HostPID || s.cgroup == nil {
		return
	}
	if err := s.cgroup.KillContainer(x.plan.Name); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
