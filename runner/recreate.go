package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// A pod of which no process is left, because its keeper was killed, or all of it, or the
// machine was restarted, goes on with another sandbox: its identity, its emptyDirs on disk,
// its logs, its events and its restart counts stay. What containers had written and nobody
// had read is lost, and so are emptyDirs in memory.

// What becomes of the sandbox, as the pod's events say it.
const (
	podInitKilled = "its first process was killed"
	allKilled     = "its processes were killed"
	rebooted      = "the machine was restarted"
)

// recoverAfterPodInit is for the first supervisor of a keeper that follows one that was killed.
func (s *supervisor) recoverAfterPodInit() (lifecycle.Observed, error) {
	known, err := s.recreate(podInitKilled)
	if err == nil {
		err = s.listen(known)
	}
	return known, err
}

// recoverAfterLoss gives what is known of a pod that was brought to life before, and lost since; of
// a new one that is nothing.
func (s *supervisor) recoverAfterLoss() (lifecycle.Observed, error) { return s.recreate(allKilled) }

// errSuspended is a record that ends with the machine's.
var errSuspended = errors.New("the pod has ended with the machine")

// recreate folds that the sandbox is gone, and removes what is left of it.
func (s *supervisor) recreate(why string) (lifecycle.Observed, error) {
	e := s.engine
	left, known, err := e.handoff.Load()
	if err == nil && known.Ending != nil && known.Ending.Cause == lifecycle.EndShutdown {
		err = errSuspended
	}
	if err != nil {
		if why == allKilled {
			why = rebooted
		}
		if !errors.Is(err, fs.ErrNotExist) && err != errSuspended && !errors.Is(err, handoff.ErrOtherBoot) {
			fmt.Fprintln(os.Stderr, err)
		}
		if known, err = loadFromDisk(e); err != nil {
			return known, err
		}
		left = e.handoff.Reset()
	}
	if known.Accepted == nil { // a new one
		return known, nil
	}
	e.warnings, e.cgroup = left.Warnings, left.Cgroup
	if err := e.removeLost(left, &known); err != nil {
		return known, fmt.Errorf("remove the previous sandbox: %w", err)
	}
	e.handoff.Update(func(st *handoff.State) {
		st.Pause, st.Cgroup, st.Runs, st.Leftovers, st.Notify, st.Hibernation = procfs.Process{}, "", nil, nil, nil, handoff.Hibernation{}
	})
	at := clock.Now()
	known.Apply(e.plan, lifecycle.Event{At: at, Kind: lifecycle.Adopted, Seed: rand.Uint64()})
	known.Apply(e.plan, lifecycle.Event{At: at, Kind: lifecycle.SandboxDied, Attempt: known.Attempt, Message: why})
	return known, nil
}

// removeLost removes what a sandbox has left of which no process lives: its cgroups, its files
// in memory, the writable layers. Mounts have gone with their namespace; what is left of its
// network is the next one's, for the lock that this takes may be the command's that waits.
func (e *engine) removeLost(left handoff.State, known *lifecycle.Observed) error {
	var errs []error
	if left.Cgroup != "" {
		errs = append(errs, cgroups.Remove(left.Cgroup))
	}
	for _, dir := range []string{sandbox.DirOf(e.store), e.store.RootfsDir(), e.store.LibcontainerDir()} {
		errs = append(errs, volumes.RemoveTree(dir))
	}
	for _, dir := range []string{e.store.RootfsDir(), e.store.LibcontainerDir()} {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	for name, c := range known.Containers {
		errs = append(errs, e.repairLog(name, c.Attempt))
	}
	return errors.Join(errs...)
}

// repairLog ends an entry of which only a part was written.
func (e *engine) repairLog(container string, attempt int) error {
	at := output.NewLogConfig(e.store, e.plan, container, attempt)
	if all, err := crilog.Attempts(at.Dir); err != nil || len(all) == 0 || all[len(all)-1] != attempt {
		return err
	}
	w, err := crilog.OpenWriter(at.Dir, attempt, at.Limits)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.CompletePartial(); err != nil {
		fmt.Fprintln(os.Stderr, err) // the disk is full: the log has half a line
	}
	return nil
}

// loadFromDisk is what the disk tells of a pod: the number of each container's latest run is
// that of its last log (kubelet: calcRestartCountByLogDir), and how it ended is known of
// those that have done their work.
func loadFromDisk(e *engine) (lifecycle.Observed, error) {
	var known lifecycle.Observed
	ends, err := e.store.Exits()
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // they are run again
	}
	for _, list := range e.plan.All() {
		for i := range list {
			name := list[i].Name
			runs, err := crilog.Attempts(e.store.LogDir(name))
			if err != nil {
				return known, fmt.Errorf("find the latest run of container %s: %w", name, err)
			}
			if len(runs) == 0 {
				continue
			}
			ev := lifecycle.Event{
				At: clock.Now(), Kind: lifecycle.Remembered, Container: name, Attempt: runs[len(runs)-1],
				ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the container's end was not seen: " + rebooted,
			}
			if end, ok := ends[name]; ok && end.Attempt == ev.Attempt {
				ev.ExitCode, ev.Reason, ev.Message = end.ExitCode, end.Reason, end.Message
			}
			known.Apply(e.plan, ev)
		}
	}
	return known, nil
}

// saveCompleted has on disk which containers have done their work while the pod goes on: they
// are not run again after the machine was restarted.
func (e *engine) saveCompleted(o *lifecycle.Observed) {
	done := lifecycle.Done(e.currentPlan(), o)
	if len(done) == e.completed {
		return
	}
	ends := map[string]pod.End{}
	for _, name := range done {
		c := o.Containers[name]
		ends[name] = pod.End{Attempt: c.Attempt, ExitCode: c.End.ExitCode, Reason: c.End.Reason, Message: c.End.Message}
	}
	if err := e.store.WriteExits(ends); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	e.completed = len(done)
}
