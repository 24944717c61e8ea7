package stage

import (
	"io"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/store"
)

// Replacer is the stage that replaces one pod by its record (store.Replacement).
const Replacer = "_replace"

// ReplacerCommand prepares the process that replaces a pod. It goes on without the caller, and
// is reached by no signal of the terminal.
func ReplacerCommand(d store.Dirs, p store.Pod, said io.Writer) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{Replacer}, podArgs(d, p)...)...)
	cmd.Args[0] = "podrun"
	cmd.Env = withoutUnit(environ())
	cmd.Dir = "/"
	if said != nil {
		cmd.Stderr = struct{ io.Writer }{said} // a pipe: what the caller has must not stay open without it
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}
