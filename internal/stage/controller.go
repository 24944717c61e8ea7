package stage

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/store"
)

// Controller is the stage that looks after one workload.
const Controller = "_controller"

// ControllerLock is the descriptor at which a controller has the workload's lock.
const ControllerLock = 3

// StartController starts the controller of a workload, which lives on without the
// caller. It has the lock from now on.
func StartController(d store.Dirs, w store.Workload, lock *store.FileLock) (pid int, err error) {
	log, err := w.Log()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", Controller, d.Data, d.Runtime, string(w.Kind), w.Namespace, w.Name)
	cmd.Args[0] = "podrun"
	cmd.Env = withoutUnit(environ())
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.File()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the controller of %s %s: %w", w.Kind, w.Name, err)
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}
