package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WaitNoReap waits for the end of a child and does not reap it.
func WaitNoReap(pid int) (syscall.WaitStatus, error) {
	AwaitExit(pid)
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("wait for process %d: %w", pid, err)
		}
		break
	}
	// After signo, errno and code, aligned as a pointer is: pid, uid, status.
	words := (*[32]int32)(unsafe.Pointer(&info))
	status := words[3+(unsafe.Sizeof(uintptr(0))/4-1)+2]
	if info.Code == cldExited {
		return syscall.WaitStatus(status << 8), nil
	}
	return syscall.WaitStatus(status), nil
}

// AwaitExit waits for the end of a process. It occupies no thread if a descriptor is available: a
// wait in a system call takes a thread and its memory.
func AwaitExit(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // Linux 5.10
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "process")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// cldExited is CLD_EXITED: the status is an exit code, not a signal.
const cldExited = 1

// KillAll calls kill for every other process in /proc, until kill finds none.
func KillAll(kill func(pid int) (found bool)) {
	for found := true; found; {
		found = false
		Each(func(pid int) { found = kill(pid) || found })
	}
}

// Each calls do for every other process in /proc.
func Each(do func(pid int)) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(filepath.Base(e)); err == nil && pid != os.Getpid() {
			do(pid)
		}
	}
}

// KillAndWait kills the process of a pidfd and waits for its end.
func KillAndWait(fd int) bool {
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return false
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return true
		}
	}
}
