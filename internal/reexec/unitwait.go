package reexec

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnitWait is what a front leaves to the loop in its place.
type UnitWait struct {
	Output  int   // a pipe that is copied to standard output; -1: none
	Wakes   []int // the front is needed when one of them is readable
	Sockets []int // of the pods' supervisors
}

// Exec replaces this process by a small loop that passes on to systemd (NOTIFY_SOCKET)
// what comes from the sockets, copies the output, and executes this program again, with
// the same arguments and env, when it is needed. It returns on failure only.
func (w UnitWait) Exec(env []string) error {
	spec := slices.Concat([]int{w.Output, len(w.Sockets)}, w.Sockets, w.Wakes)
	for i, fd := range spec {
		if i == 1 || fd < 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	text := strings.Trim(fmt.Sprint(spec), "[]")
	return unix.Exec("/proc/self/exe", os.Args, append(env, "_PODRUN_ENTER=unitwait", "_PODRUN_UNITWAIT="+text))
}

// WokenEnv is set in a front that has waited (Wait), to what has ended the wait:
// "term", "int", "hup": the signal; "gone": the supervisor of a pod.
const WokenEnv = "_PODRUN_WAKE_REASON"
