package host

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// syscallProbe is the result of a harmless call of a system call.
type syscallProbe struct {
	name   string
	needed bool   // no pod can run without it
	use    string // its purpose
	err    error  // nil: it is available
}

// kernel tries the system calls that pods need. It calls them, because a container around podrun
// may forbid calls that the kernel implements.
func (v prober) kernel() Finding {
	release, machine, err := v.uname()
	if err != nil {
		release = "unknown"
	}
	name := strings.TrimSpace("Linux " + release + " " + machine)
	for _, c := range v.calls() {
		switch {
		case c.err == nil:
		case c.needed && errors.Is(c.err, unix.ENOSYS):
			return failureFinding(fmt.Sprintf("this kernel (%s) has no %s, which %s", name, c.name, c.use), "use Linux 5.11 or later, and outside of a container that hides system calls")
		case c.needed:
			return failureFinding(fmt.Sprintf("%s is forbidden here (%v); it %s", c.name, c.err, c.use), "run podrun outside of this container, or give the container a seccomp profile that allows it")
		default:
			return noteFinding(fmt.Sprintf("%s has no %s, which %s", name, c.name, c.use), "no action is required; Linux 5.14 or later has it")
		}
	}
	return okFinding(name)
}

// tryCalls makes each call with arguments that a kernel with the call refuses: any result except
// ENOSYS or a filter's EPERM means that the call is available.
func tryCalls() []syscallProbe {
	return []syscallProbe{
		{"openat2", true, "keeps paths inside a volume", tryOpenat2()},
		{"pidfd_open", true, "identifies processes reliably", tryPidfd()},
		{"mount_setattr", false, "makes mounts read-only together with those below them", isImplemented(unix.MountSetattr(-1, "", 0, &unix.MountAttr{}))},
		{"fsopen", false, "mounts without a path that could be exchanged", isImplemented(tryFsopen())},
	}
}

func tryOpenat2() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func tryPidfd() error {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tryFsopen tests a call that only the root of a user namespace may make.
func tryFsopen() error {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// isImplemented returns nil for every error except ENOSYS.
func isImplemented(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

func uname() (release, machine string, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", err
	}
	return unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), nil
}

// seccomp checks for the kernel's system call filter: the runtime's default profile needs it.
func (v prober) seccomp() Finding {
	if v.status("Seccomp") == "" {
		return failureFinding("this kernel has no seccomp", "use a kernel with CONFIG_SECCOMP and CONFIG_SECCOMP_FILTER")
	}
	actions, _ := v.read("/proc/sys/kernel/seccomp/actions_avail")
	if !strings.Contains(actions, "errno") {
		return failureFinding("this kernel has no system call filters", "use a kernel with CONFIG_SECCOMP_FILTER")
	}
	_, machine, _ := v.uname()
	if machine != "" {
		return okFinding("system call filters are available, for " + machine)
	}
	return okFinding("system call filters are available")
}
