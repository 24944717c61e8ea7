package trampoline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartError is a failure to execute the program, or of a step before. Nothing of the process is
// left.
type StartError struct {
	Step    string // "execute", "change to the working directory", …
	Program string // argv[0]
	Errno   syscall.Errno
	code    int
}

func (e *StartError) Unwrap() error { return e.Errno }

// Code returns 127 or 126 as a shell would, or 128 for a failure that is not the program's.
func (e *StartError) Code() int { return e.code }

func (e *StartError) Error() string {
	switch {
	case e.Step != stepExecute && e.Step != stepInterpret:
		return e.Step + ": " + e.Errno.Error()
	case e.Step == stepInterpret:
		return fmt.Sprintf("exec %q: what interprets it is not there: %v", e.Program, e.Errno)
	case e.Errno == unix.ENOENT && !strings.Contains(e.Program, "/"):
		return fmt.Sprintf("exec %q: executable file not found in $PATH", e.Program)
	}
	return fmt.Sprintf("exec %q: %v", e.Program, e.Errno)
}

const (
	stepDirectory = "change to the working directory"
	stepExecute   = "execute"
	stepInterpret = "interpret"
)

// steps are the names of the steps of config.h, in the order of their numbers, from 2 on.
var steps = [...]string{
	"read the configuration", "set oom_score_adj", "set the limits of resources", "enter the container", "give up privileges",
	stepDirectory, "keep the working directory in the container", "bound the capabilities", "hand over input and output",
	"set the groups", "set the group", "set the user", "set the capabilities", "load the filter for system calls",
	"change to the AppArmor profile or the SELinux label", "fork", "begin a session", stepExecute, stepInterpret,
}

const (
	replySize    = 8
	replyStarted = 1
)

// replies are all replies of the trampoline.
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
		case what == replyStarted && h.pid == 0 && number > 0:
			h.pid = number
		case what >= 2 && what-2 < len(steps) && h.failed == nil:
			h.failed = newStartError(steps[what-2], program, syscall.Errno(number))
		default:
			return fmt.Errorf("unexpected reply of the trampoline: %d %d", what, number)
		}
	}
}

func newStartError(step, program string, errno syscall.Errno) *StartError {
	e := &StartError{Step: step, Program: program, Errno: errno, code: 128}
	if step == stepExecute || step == stepInterpret || step == stepDirectory {
		e.code = 126
		if errno == unix.ENOENT || errno == unix.ENOTDIR {
			e.code = 127
		}
	}
	return e
}

// newChannel returns the two ends of a channel.
func newChannel() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.SetNonblock(pair[1], false); err != nil {
		return nil, nil, errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	return os.NewFile(uintptr(pair[0]), "trampoline"), os.NewFile(uintptr(pair[1]), "trampoline"), nil
}
