package reexec

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// UnitLoop describes the unit loop: the C program that replaces an idle `podrun up` or controller by exec.
type UnitLoop struct {
	Output  int   // a pipe that is copied to standard output; -1: none
	Wakers  []int // the CLI is needed when one of them is readable
	Sockets []int // of the pods' supervisors
}

// Exec replaces this process by a small loop. The loop forwards messages from the sockets to
// systemd (NOTIFY_SOCKET), copies the output, and executes this program again, with the same
// arguments and env, when it is needed. Exec returns on failure only.
func (w UnitLoop) Exec(env []string) error {
	spec := slices.Concat([]int{w.Output, len(w.Sockets)}, w.Sockets, w.Wakers)
	for i, fd := range spec {
		if i == 1 || fd < 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	text := strings.Trim(fmt.Sprint(spec), "[]")
	return unix.Exec("/proc/self/exe", os.Args, append(env, protocol.EnvEnter+"="+protocol.EnterUnitLoop, protocol.EnvUnitLoop+"="+text))
}
