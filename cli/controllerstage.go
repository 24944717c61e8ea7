package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/pod"
)

// controllerStage looks after one workload, until it is gone or, a Job, over. When
// nothing happens it is a loop in C. A signal ends it and nothing else: its pods do not
// need it to live.
func controllerStage(args []string) int {
	f := &front{getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr, rooms: house{}, signals: remote.Signals, pullBackOff: pullBackOff, stillAfter: stillAfter}
	if err := f.controlOne(args); err != nil {
		report.Print(f.err, err)
		return exitFailure
	}
	return exitOK
}

func (f *front) controlOne(args []string) error {
	if len(args) != 5 {
		return report.New(report.Internal, "", "a controller takes five arguments")
	}
	why := os.Getenv(reexec.WokenEnv)
	os.Unsetenv(reexec.WokenEnv)
	if why != "" && why != "gone" {
		return nil
	}
	lock := reexec.ControllerLock
	if _, err := unix.FcntlInt(uintptr(lock), unix.F_GETFD, 0); err != nil {
		return report.New(report.Internal, "podrun up starts controllers", "a controller needs its lock: %w", err)
	}
	unix.CloseOnExec(lock) // the pods that it makes do not have it
	dirs := store.Dirs{Data: args[0], Runtime: args[1]}
	w, err := dirs.Workload(pod.ObjectKind(args[2]), args[3], args[4])
	if err != nil {
		return err
	}
	keeper, err := f.rooms.pods(dirs)
	if err != nil {
		return err
	}
	c, err := f.newController(dirs, keeper, []store.Workload{w})
	if err != nil {
		return err
	}
	defer c.close()
	return c.run(context.Background(), func(wakes ...int) error {
		if err := stayOpen(lock); err != nil {
			return err
		}
		return fmt.Errorf("wait for pods: %w", reexec.UnitWait{Output: -1, Wakes: wakes}.Exec(os.Environ()))
	})
}

// stayOpen keeps a descriptor over an exec.
func stayOpen(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep descriptor %d: %w", fd, err)
	}
	return nil
}

// control sees to it that a workload has a controller: this one has none, or it is
// started.
func (f *front) control(dirs store.Dirs, w store.Workload) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	lock, err := w.Lock(boot)
	if errors.Is(err, store.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close() // the controller has it
	pid, err := reexec.StartController(dirs, w, lock)
	if err == nil {
		err = w.WriteController(lock.File(), boot, pid)
	}
	if err != nil {
		return err
	}
	kind := strings.ToLower(string(w.Kind))
	scope(systemd.Scope{
		Name: "podrun-" + kind + "-" + w.Namespace + "-" + w.Name, Description: "podrun: controller of " + kind + " " + w.Namespace + "/" + w.Name,
		PID: pid, Stop: stopMargin,
	})
	return nil
}

// scope gives a process a scope of its own, that it outlives a login. Where there is no
// manager it lives where the caller does.
func scope(s systemd.Scope) {
	manager, ok := delegation.FindManager()
	if _, alone, err := delegation.Own(); alone || err != nil || !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	_, _ = systemd.StartScope(ctx, manager, s)
}

// bootID tells one start of the machine from another.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("find out when the machine was started: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// revive finishes what killed commands have begun, and starts the controllers that were killed
// since the machine was started. Those of before are for the next `podrun up`, or for their units.
func (f *front) revive(dirs store.Dirs) {
	f.finish(dirs)
	boot, err := bootID()
	list, lerr := dirs.Workloads("", pod.Workloads()...)
	if errors.Join(err, lerr) != nil {
		return // who asks for workloads hears of it
	}
	for _, w := range list {
		alive, last, _ := w.Controller()
		if alive || last != boot {
			continue
		}
		v, err := viewOf(dirs, w)
		if err != nil || v.object.Owner != nil || v.decide(time.Now()).Done {
			continue
		}
		if err := f.control(dirs, w); err != nil {
			report.Print(f.err, err)
		}
	}
}
