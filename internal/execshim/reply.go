package execshim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/protocol"
)

// StartError is a failure to execute the program, or of a step before. Nothing of the process is
// left.
type StartError struct {
	step    int    // protocol.Step…
	Program string // argv[0]
	Errno   syscall.Errno
	code    int
}

func (e *StartError) Unwrap() error { return e.Errno }

// Code returns 127 or 126 as a shell would, or 128 for a failure that is not the program's.
func (e *StartError) Code() int { return e.code }

func (e *StartError) Error() string {
	switch {
	case e.step != protocol.StepExecute && e.step != protocol.StepInterpreter:
		return steps[e.step] + ": " + e.Errno.Error()
	case e.step == protocol.StepInterpreter:
		return fmt.Sprintf("exec %q: its interpreter does not exist: %v", e.Program, e.Errno)
	case e.Errno == unix.ENOENT && !strings.Contains(e.Program, "/"):
		return fmt.Sprintf("exec %q: executable file not found in $PATH", e.Program)
	}
	return fmt.Sprintf("exec %q: %v", e.Program, e.Errno)
}

// steps are the names of the failed steps.
var steps = map[int]string{
	protocol.StepConfig: "read the configuration", protocol.StepOOM: "set oom_score_adj", protocol.StepLimits: "set the limits of resources",
	protocol.StepEnter: "enter the container", protocol.StepPrivileges: "give up privileges", protocol.StepDirectory: "change to the working directory",
	protocol.StepOutside: "keep the working directory in the container", protocol.StepBounding: "bound the capabilities",
	protocol.StepStdio: "hand over input and output", protocol.StepGroups: "set the groups", protocol.StepGroup: "set the group",
	protocol.StepUser: "set the user", protocol.StepCapabilities: "set the capabilities", protocol.StepFilter: "load the filter for system calls",
	protocol.StepProfile: "change to the AppArmor profile or the SELinux label", protocol.StepFork: "fork", protocol.StepSession: "begin a session",
	protocol.StepExecute: "execute", protocol.StepInterpreter: "interpret",
}

const replySize = 8

// replies are all replies of the exec shim.
type replies struct {
	pid    int // of the new process, if it was made
	failed *StartError
}

// read reads until the program is executed or no process is left that could execute it.
func (h *replies) read(channel io.Reader, program string) error {
	for {
		var b [replySize]byte
		if _, err := io.ReadFull(channel, b[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		what, number := int(binary.NativeEndian.Uint32(b[:4])), int(int32(binary.NativeEndian.Uint32(b[4:])))
		switch {
		case what == protocol.ShimStarted && h.pid == 0 && number > 0:
			h.pid = number
		case steps[what] != "" && h.failed == nil:
			h.failed = newStartError(what, program, syscall.Errno(number))
		default:
			return fmt.Errorf("unexpected reply of the exec shim: %d %d", what, number)
		}
	}
}

func newStartError(step int, program string, errno syscall.Errno) *StartError {
	e := &StartError{step: step, Program: program, Errno: errno, code: 128}
	if step == protocol.StepExecute || step == protocol.StepInterpreter || step == protocol.StepDirectory {
		e.code = 126
		if errno == unix.ENOENT || errno == unix.ENOTDIR {
			e.code = 127
		}
	}
	return e
}

// newChannel returns the two ends of a channel.
func newChannel() (local, remote *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.SetNonblock(pair[1], false); err != nil {
		return nil, nil, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), "exec shim"), os.NewFile(uintptr(pair[1]), "exec shim"), nil
}
