package reexec

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// UnitLoop describes the unit loop, a part of the pod program that replaces an idle `podrun up` or controller by exec.
type UnitLoop struct {
	Program string // the pod program
	Output  int    // a pipe that is copied to standard output; -1: none
	Wakers  []int  // the CLI is needed when one of them is readable
	Sockets []int  // of the pods' supervisors
}

// Exec replaces this process by a small loop. The loop forwards messages from the sockets to
// systemd (NOTIFY_SOCKET), copies the output, and executes this program again, with the same
// arguments and env, when it is needed. Exec returns on failure only.
func (w UnitLoop) Exec(env []string) error {
	cli, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0) // the file may be replaced meanwhile
	if err != nil {
		return fmt.Errorf("open podrun's own program: %w", err)
	}
	defer unix.Close(cli)
	spec := slices.Concat([]int{cli, w.Output, len(w.Sockets)}, w.Sockets, w.Wakers)
	for i, fd := range spec {
		if i == 2 || fd < 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	text := strings.Trim(fmt.Sprint(spec), "[]")
	return unix.Exec(w.Program, os.Args, append(env, protocol.EnvEnter+"="+protocol.EnterUnitLoop, protocol.EnvUnitLoop+"="+text))
}
