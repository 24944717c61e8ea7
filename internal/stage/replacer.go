package stage

import (
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/store"
)

// Replacer is the stage that replaces one pod by its record (store.Replacement).
const Replacer = "_replace"

// ReplacerLock is the descriptor at which a replacer has the lock of the replacement.
const ReplacerLock = 3

// ReplacerCommand prepares the process that replaces a pod. It goes on without the caller, and
// is reached by no signal of the terminal. It inherits the lock, and waits for it if the caller
// does not hold it.
func ReplacerCommand(d store.Dirs, p store.Pod, lock *store.FileLock, said io.Writer) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{Replacer}, podArgs(d, p)...)...)
	cmd.Args[0] = "podrun"
	cmd.Env = withoutUnit(environ())
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock.File()}
	if said != nil {
		cmd.Stderr = struct{ io.Writer }{said} // a pipe: what the caller has must not stay open without it
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}
