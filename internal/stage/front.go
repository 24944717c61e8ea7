package stage

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

// Front is what a pod's supervisor gets of a front that serves systemd.
type Front struct {
	wire.AttachRequest
	Socket *os.File // wire.Attach
	Output *os.File // where containers' output is copied; nil for nowhere
}

// attachEnv names the descriptors and the request in the supervisor's environment.
const attachEnv = "_PODRUN_ATTACH"

// attached is the text of attachEnv.
type attached struct {
	Socket, Output int
	wire.AttachRequest
}

// hand gives f to the pod's first process. What systemd tells its unit's main process
// is not for the pod.
func (f *Front) hand(cmd *exec.Cmd) {
	cmd.Env = withoutUnit(cmd.Env)
	if f == nil {
		return
	}
	a := attached{Output: -1, AttachRequest: f.AttachRequest}
	give := func(file *os.File) int {
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
		return 2 + len(cmd.ExtraFiles)
	}
	a.Socket = give(f.Socket)
	if f.Output != nil {
		a.Output = give(f.Output)
	}
	text, _ := json.Marshal(a) // numbers and a string
	cmd.Env = append(cmd.Env, attachEnv+"="+string(text))
}

// withoutUnit leaves out what systemd hands to one process only (sd_notify(3),
// sd_watchdog_enabled(3), sd_listen_fds(3)).
func withoutUnit(env []string) []string {
	var rest []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "MAINPID":
		default:
			rest = append(rest, v)
		}
	}
	return rest
}

// Attached is the front that the supervisor was given at its start: the request and
// the descriptors (output -1: none). It can be asked once.
func Attached() (req wire.AttachRequest, socket, output int, ok bool, err error) {
	text := os.Getenv(attachEnv)
	if text == "" {
		return req, -1, -1, false, nil
	}
	os.Unsetenv(attachEnv)
	var a attached
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return req, -1, -1, false, fmt.Errorf("read %s: %w", attachEnv, err)
	}
	for _, fd := range []int{a.Socket, a.Output} {
		if fd >= 0 {
			unix.CloseOnExec(fd)
		}
	}
	return a.AttachRequest, a.Socket, a.Output, true, nil
}

// WokenEnv is set in a front that has waited (Wait), to what has ended the wait:
// "term", "int", "hup": the signal; "gone": the supervisor of a pod.
const WokenEnv = "_PODRUN_WOKEN"

// Waiting is what a front leaves to the loop in its place.
type Waiting struct {
	Output  int   // a pipe that is copied to standard output; -1: none
	Wakes   []int // the front is needed when one of them is readable
	Sockets []int // of the pods' supervisors
}

// Wait replaces this process by a small loop that passes on to systemd (NOTIFY_SOCKET)
// what comes from the sockets, copies the output, and executes this program again, with
// the same arguments and env, when it is needed. It returns on failure only.
func (w Waiting) Wait(env []string) error {
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
	return unix.Exec("/proc/self/exe", os.Args, append(env, "_PODRUN_ENTER=wait", "_PODRUN_WAIT="+text))
}
