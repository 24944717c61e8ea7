package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
)

// Exit describes how an instance's process exited.
type Exit struct {
	Code, Signal int
	OOM          bool
	OOMLimit     lifecycle.OOMLimit
	Message      string
	At           lifecycle.Now
}

// NewExit returns the Exit for an exit status; err means that the status is unknown.
func NewExit(x podinit.Exit, err error) *Exit {
	e := &Exit{At: clock.Now()}
	ago := e.At.Boot - x.At
	e.At.Boot, e.At.Wall = x.At, e.At.Wall.Add(-ago)
	switch {
	case err != nil:
		e.Code, e.Message = 255, err.Error()
	case x.Status.Signaled():
		e.Code, e.Signal = 128+int(x.Status.Signal()), int(x.Status.Signal())
	default:
		e.Code = x.Status.ExitStatus()
	}
	return e
}

// plainError removes two parts of libcontainer's error: that a process could not be started, which the caller
// prints itself, and a guess why a sysctl cannot be opened, which is wrong: the kernel or the user namespace
// lacks it.
func plainError(err error) error {
	return errors.New(strings.NewReplacer("unable to start container process: ", "", "error during container init: ", "",
		"open sysctl ", "set sysctl ", " file: unsafe procfs detected: ", ": ").Replace(err.Error()))
}

// startExitCode distinguishes "no such program" from "cannot be executed". The exec shim's error has a
// type; libcontainer's arrives as text.
func startExitCode(err error) int {
	var start *execshim.StartError
	if errors.As(err, &start) {
		return start.Code()
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "executable file not found") || strings.Contains(text, "no such file or directory"):
		return 127
	case strings.Contains(text, "permission denied") || strings.Contains(text, "is a directory") || strings.Contains(text, "exec format error"):
		return 126
	}
	return 128
}

// maxMessage is how much of the end of a termination message is kept (kubelet: pkg/kubelet/kuberuntime
// MaxContainerTerminationMessageLength).
const maxMessage = 4096

// makeMessageFile makes the file that is bound at the container's terminationMessagePath.
func (x *Container) makeMessageFile(s *sandbox.Sandbox) error {
	if x.Plan.TerminationMessagePath == "" {
		return nil
	}
	path := x.messageFilePath(s)
	if err := sandbox.WriteFile(path, "", 0o666); err != nil {
		return fmt.Errorf("make termination log: %w", err)
	}
	x.messagePath = path
	return s.ChownToPod(path)
}

// TerminationMessage returns what the container wrote to its terminationMessagePath. If that is empty, the
// container failed and its policy is FallbackToLogsOnError, it returns the end of the log.
func (x *Container) TerminationMessage(logDir string, code int) string {
	text, err := readTail(x.messagePath, maxMessage)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "read termination message: " + err.Error()
	}
	if text == "" && code != 0 && x.Plan.TerminationMessageFrom == pod.MessageFallbackToLogs {
		return output.Tail(logDir, x.Attempt)
	}
	return text
}

// readTail reads the last max bytes of a regular file. The container owns the file and may have replaced it
// by anything.
func readTail(path string, max int64) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, st.Size()-min(st.Size(), max), max))
	return string(b), err
}
