package runner

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// sweep kills what a supervisor that died has left half done: starts of containers,
// commands of exec and of probes. They are the keeper's children now, and none of those
// that are known. It returns when there are no such processes any more.
func sweep(known map[process]bool) {
	killEach(func(pid int) bool { return killOrphan(pid, known) })
}

// killEach calls kill for every other process that there is, until it finds none.
func killEach(kill func(pid int) (found bool)) {
	for found := true; found; {
		found = false
		eachProcess(func(pid int) { found = kill(pid) || found })
	}
}

// eachProcess calls do for every other process that there is.
func eachProcess(do func(pid int)) {
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

// killOrphan kills a child of the keeper that nobody knows and waits for its end.
func killOrphan(pid int, known map[process]bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	s, ok := stat(pid)
	if !ok || s.parent != keeperPID || s.state == 'Z' || known[s.process] {
		return false
	}
	return killAndWait(fd)
}

// killAndWait kills the process of a descriptor and waits for its end.
func killAndWait(fd int) bool {
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
