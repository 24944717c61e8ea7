package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/hostdeps"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// Main runs the controller of one workload, until the workload is removed or, for a Job, over. While
// nothing happens it is a loop in C. A signal ends only the controller: its pods continue without it.
func Main(args []string) int {
	env := cmdutil.New(os.Getenv, hostdeps.Deps{}, os.Stdin, os.Stdout, os.Stderr)
	return exitcode.Report(env.ErrOut, runProcess(env, args))
}

func runProcess(env *cmdutil.Env, args []string) error {
	if len(args) != 5 {
		return report.New(report.Internal, "", "a controller requires five arguments")
	}
	reason := os.Getenv(protocol.EnvWokenBy)
	os.Unsetenv(protocol.EnvWokenBy)
	if reason != "" && reason != protocol.WokenByGone {
		return nil
	}
	lock, err := store.InheritedFileLock(protocol.FDLock) // its pods must not inherit it
	if err != nil {
		return report.New(report.Internal, "podrun up starts controllers", "a controller requires its lock: %w", err)
	}
	defer lock.Close()
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	w, err := dirs.Workload(pod.ObjectKind(args[2]), args[3], args[4])
	if err != nil {
		return err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	c, err := New(env, dirs, launcher, []store.Workload{w})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Run(context.Background(), func(wakes ...int) error {
		if err := KeepOpenOnExec(lock.File()); err != nil {
			return err
		}
		return ExecUnitLoop(dirs, reexec.UnitLoop{Output: -1, Wakers: wakes}, os.Environ())
	})
}

// ExecUnitLoop executes the unit loop. It returns on failure only.
func ExecUnitLoop(dirs store.Dirs, loop reexec.UnitLoop, env []string) error {
	program, executed, err := programs.PodProgram(dirs)
	if err != nil {
		return fmt.Errorf("wait for the pods: %w", err)
	}
	defer executed()
	loop.Program = program
	return fmt.Errorf("wait for the pods: %w", loop.Exec(env))
}

// KeepOpenOnExec keeps a descriptor open across an exec.
func KeepOpenOnExec(f *os.File) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep descriptor %d: %w", f.Fd(), err)
	}
	return nil
}

// EnsureRunning starts a controller for a workload that has none.
func EnsureRunning(env *cmdutil.Env, dirs store.Dirs, w store.Workload) error {
	lock, err := w.Lock()
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close() // the controller has its own descriptor
	pid, err := reexec.StartController(dirs, w, lock)
	if err == nil {
		err = w.WriteController(lock.File(), pid)
	}
	if err != nil {
		return err
	}
	kind := strings.ToLower(string(w.Kind))
	hostdeps.StartScope(systemd.Scope{
		Name: "podrun-" + kind + "-" + w.Namespace + "-" + w.Name, Description: "podrun: controller of " + kind + " " + w.Namespace + "/" + w.Name,
		PID: pid, Stop: hostdeps.ScopeStopMargin,
	})
	return nil
}
