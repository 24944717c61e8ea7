package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// A pod without any process left continues with a new sandbox: its pod init or all its processes were
// killed, or the machine was restarted. Its identity, its emptyDirs on disk, logs, events and restart
// counts stay. Output that was not read yet is lost, and so are emptyDirs in memory.

// Messages of the pod's events about the loss of the sandbox.
const (
	podInitKilled = "its first process was killed"
	runtimeLost   = "its runtime directory was deleted"
	allKilled     = "its processes were killed"
	rebooted      = "the machine was restarted"
)

// exitUnknown returns the message of a container whose exit was not observed because the sandbox was lost.
func exitUnknown(reason string) string {
	if reason != rebooted {
		reason = "the pod's sandbox is gone: " + reason
	}
	return "the container's exit was not observed: " + reason
}

// recoverAfterPodInitDeath recovers a pod whose pod init was killed. The caller is the first supervisor of
// the pod init that replaces it.
func (s *supervisor) recoverAfterPodInitDeath() (lifecycle.Observed, error) {
	known, err := s.recreate(podInitKilled)
	if err == nil {
		err = s.listenAndServe(known)
	}
	return known, err
}

// restoreRuntime makes the runtime directory of a pod again if it is lost, and continues the log of this process in
// it: the file to which the pod's processes write is deleted.
func restoreRuntime(dirs store.Dirs, p store.Pod) (store.Pod, error) {
	if err := p.RestoreRuntime(); err != nil {
		return p, err
	}
	p = dirs.Pod(p.Namespace, p.Name)
	var st unix.Stat_t
	if unix.Fstat(2, &st) != nil || st.Nlink > 0 {
		return p, nil
	}
	log, err := p.OpenSupervisorLog()
	if err != nil {
		return p, err
	}
	defer log.Close()
	return p, unix.Dup3(int(log.Fd()), 2, 0)
}

// newOrLost returns what is observed of a lost pod, or the zero value for a new one.
func (s *supervisor) newOrLost() (lifecycle.Observed, error) { return s.recreate(allKilled) }

// errEndedWithMachine means that the pod ended together with the machine.
var errEndedWithMachine = errors.New("the pod has ended with the machine")

// recreate returns what is observed of the pod. If the pod ever had a sandbox, recreate records that the
// sandbox is gone, and removes what is left of it. reason is the cause, if the state shows no restart of the
// machine.
func (s *supervisor) recreate(reason string) (lifecycle.Observed, error) {
	e := s.engine
	saved, known, err := e.handoff.Load()
	if err == nil && known.Ending != nil && known.Ending.Cause == lifecycle.EndShutdown {
		err = errEndedWithMachine
	}
	if err != nil {
		switch gone := errors.Is(err, fs.ErrNotExist) || err == errEndedWithMachine || errors.Is(err, handoff.ErrOtherBoot); {
		case !gone:
			fmt.Fprintln(os.Stderr, err) // the state is damaged
		case reason == allKilled:
			reason = rebooted
		default:
			reason = runtimeLost
		}
		if known, err = loadFromDisk(e, reason); err != nil {
			return known, err
		}
		saved = e.handoff.Reset()
	}
	if known.StartTime == nil { // a new pod
		return known, nil
	}
	e.warnings, e.cgroup = saved.Warnings, saved.Cgroup
	if err := e.removeLost(saved, &known); err != nil {
		return known, fmt.Errorf("remove the previous sandbox: %w", err)
	}
	e.handoff.Update(func(st *handoff.State) {
		st.PauseProcess, st.Cgroup, st.Running, st.Leftovers, st.Notify, st.Hibernation = procfs.Process{}, "", nil, nil, nil, handoff.Hibernation{}
	})
	moment := clock.Now()
	known.Apply(e.plan, lifecycle.Event{At: moment, Kind: lifecycle.Recovered, Seed: rand.Uint64()})
	known.Apply(e.plan, lifecycle.Event{At: moment, Kind: lifecycle.SandboxKilled, Attempt: known.Attempt, Message: reason})
	return known, nil
}

// removeLost removes what is left of a sandbox without processes: its cgroups, its files in memory, the
// writable layers. Its mounts have gone with their namespace. The next sandbox removes its network: here a
// command that waits for this pod may hold the lock that the removal needs.
func (e *engine) removeLost(saved handoff.State, known *lifecycle.Observed) error {
	var errs []error
	if saved.Cgroup != "" {
		errs = append(errs, cgroups.Remove(saved.Cgroup))
	}
	for _, dir := range []string{sandbox.DirOf(e.pod), e.pod.RootfsDir(), e.pod.LibcontainerDir()} {
		errs = append(errs, volumes.RemoveTree(dir))
	}
	for _, dir := range []string{e.pod.RootfsDir(), e.pod.LibcontainerDir()} {
		errs = append(errs, os.MkdirAll(dir, 0o700))
	}
	for name, c := range known.Containers {
		errs = append(errs, e.repairLog(name, c.Attempt))
	}
	return errors.Join(errs...)
}

// repairLog completes a log entry that was written only in part.
func (e *engine) repairLog(container string, attempt int) error {
	config := output.NewLogConfig(e.pod, e.plan, container, attempt)
	if all, err := crilog.Attempts(config.Dir); err != nil || len(all) == 0 || all[len(all)-1] != attempt {
		return err
	}
	w, err := crilog.OpenWriter(config.Dir, attempt, config.Limits)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.CompletePartial(); err != nil {
		fmt.Fprintln(os.Stderr, err) // the disk is full: the log ends in an incomplete line
	}
	return nil
}

// loadFromDisk returns what the disk records of a pod. The number of a container's latest instance is the number of its
// last log, so a restart of the machine is one restart of every container that runs again (kubelet: startContainer in
// pkg/kubelet/kuberuntime, which counts one more than the latest status or, without one, than the latest log:
// calcRestartCountByLogDir). The disk has the exits of containers that have
// completed; the others get an exit with the reason.
func loadFromDisk(e *engine, reason string) (lifecycle.Observed, error) {
	var known lifecycle.Observed
	exits, err := e.pod.Exits()
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // the containers run again
	}
	for _, list := range e.plan.All() {
		for i := range list {
			name := list[i].Name
			attempts, err := crilog.Attempts(e.pod.LogDir(name))
			if err != nil {
				return known, fmt.Errorf("find the latest instance of container %s: %w", name, err)
			}
			if len(attempts) == 0 {
				continue
			}
			ev := lifecycle.Event{
				At: clock.Now(), Kind: lifecycle.Restored, Container: name, Attempt: attempts[len(attempts)-1],
				ExitCode: 137, Reason: "ContainerStatusUnknown", Message: exitUnknown(reason),
			}
			if end, ok := exits[name]; ok && end.Attempt == ev.Attempt {
				ev.ExitCode, ev.Reason, ev.Message = end.ExitCode, end.Reason, end.Message
			}
			known.Apply(e.plan, ev)
		}
	}
	return known, nil
}

// saveCompleted records on disk which containers have completed while the pod goes on: they do not run
// again after a restart of the machine.
func (e *engine) saveCompleted(o *lifecycle.Observed) {
	done := lifecycle.CompletedContainers(e.currentPlan(), o)
	if len(done) == e.completed {
		return
	}
	exits := map[string]pod.Exit{}
	for _, name := range done {
		c := o.Containers[name]
		exits[name] = pod.Exit{Attempt: c.Attempt, ExitCode: c.End.ExitCode, Reason: c.End.Reason, Message: c.End.Message}
	}
	if err := e.pod.WriteExits(exits); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	e.completed = len(done)
}
