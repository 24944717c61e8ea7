package reexec

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/store"
)

// Controller is the re-exec entry point of the controller of one workload.
const Controller = "_controller"

// ControllerLock is the descriptor at which a controller inherits the workload's lock.
const ControllerLock = 3

// StartController starts the controller of a workload, which outlives the caller and holds the lock
// from now on.
func StartController(d store.Dirs, w store.Workload, lock *store.FileLock) (pid int, err error) {
	log, err := w.Log()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", Controller, d.Data, d.Runtime, string(w.Kind), w.Namespace, w.Name)
	cmd.Args[0] = "podrun"
	cmd.Env = WithoutSystemd(Environ())
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.File()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from it
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the controller of %s %s: %w", w.Kind, w.Name, err)
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// Puller is the re-exec entry point that pulls the images of one pod and starts the pod.
const Puller = "_puller"

// PullerLock is the descriptor at which a puller inherits the pod's lock.
const PullerLock = 3

// pullerEnv is set in the process that only starts a puller.
const pullerEnv = "_PODRUN_PULLER"

// StartPuller starts the puller of a pod. The puller outlives the caller and holds the lock from
// now on. It is not a child of the caller, so that a long-lived caller need not reap it.
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

// BeginPuller starts a puller if that is all that this process is to do, and returns the puller's
// pid.
func BeginPuller(d store.Dirs, p store.Pod, wishes string, lock *os.File) (pid int, begun bool, err error) {
	if os.Getenv(pullerEnv) == "" {
		return 0, false, nil
	}
	cmd, log, err := puller(d, p, wishes, lock)
	if err != nil {
		return 0, true, err
	}
	defer log.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from it
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
	cmd := exec.Command("/proc/self/exe", append([]string{Puller}, append(PodArgs(d, p), wishes)...)...)
	cmd.Args[0] = "podrun"
	cmd.Env = WithoutSystemd(Environ())
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	return cmd, log, nil
}

// Replacer is the re-exec entry point that replaces one pod by its record (store.Replacement).
const Replacer = "_replace"

// ReplacerLock is the descriptor at which a replacer inherits the lock of the replacement.
const ReplacerLock = 3

// ReplacerCommand prepares the process that replaces a pod. It outlives the caller and gets no
// signal of the terminal. It inherits the lock, and waits for it if the caller does not hold it.
func ReplacerCommand(d store.Dirs, p store.Pod, lock *store.FileLock, said io.Writer) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{Replacer}, PodArgs(d, p)...)...)
	cmd.Args[0] = "podrun"
	cmd.Env = WithoutSystemd(Environ())
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock.File()}
	if said != nil {
		cmd.Stderr = struct{ io.Writer }{said} // a pipe, so that the caller's file can close
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}
