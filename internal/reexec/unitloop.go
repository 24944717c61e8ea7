package reexec

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

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
	// A signal waits until the loop can take it. Its default action would end the process in between.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var stops, before unix.Sigset_t
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		const bits = unsafe.Sizeof(stops.Val[0]) * 8
		stops.Val[uintptr(s-1)/bits] |= 1 << (uintptr(s-1) % bits)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &stops, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return unix.Exec(w.Program, os.Args, append(env, protocol.EnvEnter+"="+protocol.EnterUnitLoop, protocol.EnvUnitLoop+"="+text))
}
