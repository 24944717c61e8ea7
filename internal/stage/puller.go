package stage

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/store"
)

// Puller is the stage that pulls the images of one pod and starts it.
const Puller = "_puller"

// PullerLock is the descriptor at which a puller has the pod's lock.
const PullerLock = 3

// pullerEnv is set in the process that only begins a puller.
const pullerEnv = "_PODRUN_PULLER"

// StartPuller starts the puller of a pod, which lives on without the caller and is no child of
// it: a caller that lives long need not wait for its end. It has the lock from now on.
func StartPuller(d store.Dirs, p store.Pod, wishes string, lock *os.File) error {
	cmd, log, err := puller(d, p, wishes, lock)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Env = append(cmd.Env, pullerEnv+"=begin")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the pull of pod %s: %w; see %s", p.Name, err, p.SupervisorLog())
	}
	return nil
}

// BeginPuller starts a puller if this process is to do only that, and returns its pid.
func BeginPuller(d store.Dirs, p store.Pod, wishes string, lock *os.File) (pid int, begun bool, err error) {
	if os.Getenv(pullerEnv) == "" {
		return 0, false, nil
	}
	cmd, log, err := puller(d, p, wishes, lock)
	if err != nil {
		return 0, true, err
	}
	defer log.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		return 0, true, fmt.Errorf("start the pull of pod %s: %w", p.Name, err)
	}
	return cmd.Process.Pid, true, nil
}

func puller(d store.Dirs, p store.Pod, wishes string, lock *os.File) (*exec.Cmd, *os.File, error) {
	log, err := os.OpenFile(p.SupervisorLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open supervisor log: %w", err)
	}
	cmd := exec.Command("/proc/self/exe", append([]string{Puller}, append(podArgs(d, p), wishes)...)...)
	cmd.Args[0] = "podrun"
	cmd.Env = withoutUnit(environ())
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	return cmd, log, nil
}
