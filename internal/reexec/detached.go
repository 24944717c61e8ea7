package reexec

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/store"
)

// detached prepares a run of an entry point in a process that outlives the caller and gets no signal of
// its terminal. The process inherits the lock (protocol.FDLock).
func detached(lock *os.File, entryPoint string, args ...string) *exec.Cmd {
	cmd := Command(Spec{Name: entryPoint, Args: args, ExtraFiles: []*os.File{lock}})
	cmd.Env = WithoutSystemd(Environ())
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keeps the terminal's Ctrl-C from it
	return cmd
}

// StartController starts the controller of a workload. The controller outlives the caller and holds the
// lock from now on.
func StartController(d store.Dirs, w store.Workload, lock *store.FileLock) (pid int, err error) {
	log, err := w.Log()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := detached(lock.File(), protocol.EntryController, d.Data, d.Runtime, string(w.Kind), w.Namespace, w.Name)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the controller of %s %s: %w", w.Kind, w.Name, err)
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// StartPuller starts the puller of a pod. The puller outlives the caller and holds the lock from
// now on. It is not a child of the caller, so that a long-lived caller need not reap it.
func StartPuller(d store.Dirs, p store.Pod, options string, lock *os.File) error {
	cmd, log, err := puller(d, p, options, lock)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Env = append(cmd.Env, protocol.EnvPuller+"=start")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the pull of pod %s: %w; see %s", p.Name, err, p.SupervisorLog())
	}
	return nil
}

// StartDetachedPuller starts the puller if this process is only its starter (EnvPuller), and returns the
// puller's pid. Then started is true, and the process is done.
func StartDetachedPuller(d store.Dirs, p store.Pod, options string, lock *os.File) (pid int, started bool, err error) {
	if os.Getenv(protocol.EnvPuller) == "" {
		return 0, false, nil
	}
	cmd, log, err := puller(d, p, options, lock)
	if err != nil {
		return 0, true, err
	}
	defer log.Close()
	if err := cmd.Start(); err != nil {
		return 0, true, fmt.Errorf("start the pull of pod %s: %w", p.Name, err)
	}
	return cmd.Process.Pid, true, nil
}

func puller(d store.Dirs, p store.Pod, options string, lock *os.File) (*exec.Cmd, *os.File, error) {
	log, err := p.OpenSupervisorLog()
	if err != nil {
		return nil, nil, err
	}
	cmd := detached(lock, protocol.EntryPuller, append(PodArgs(d, p), options)...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, log, nil
}

// ReplacerCommand prepares the process that replaces a pod by its record (store.Replacement). The process
// inherits the lock, and waits for it if the caller does not hold it.
func ReplacerCommand(d store.Dirs, p store.Pod, lock *store.FileLock, stderr io.Writer) *exec.Cmd {
	cmd := detached(lock.File(), protocol.EntryReplacer, PodArgs(d, p)...)
	if stderr != nil {
		cmd.Stderr = struct{ io.Writer }{stderr} // a pipe, so that the caller's file can close
	}
	return cmd
}
