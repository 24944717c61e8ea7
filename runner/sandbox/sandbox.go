package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/undo"
	"github.com/podrun/podrun/netns/resolvconf"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/network"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/volumes"
)

// Sandbox is what the containers of a pod share.
type Sandbox struct {
	Plan    *pod.Plan
	Pod     store.Pod
	Attempt int    // number of earlier sandboxes of the pod
	Dir     string // on tmpfs; contains mounts and files that are bound into containers

	Namespaces
	network.Network
	Handoff        *handoff.Record
	PauseProcess   procfs.Process // PID 1 of the shared PID namespace; zero without one
	Cgroup         *cgroups.Pod
	Freezer        *Freezer
	KeptFiles      sync.Mutex // protects the files that containers with KeepFiles have kept
	SeccompFilters sync.Map   // of the default profile, by capabilities: see package container
	warnings       []string
	ResolvEvents   []resolvconf.Event // for the pod's events
	undo           undo.Stack
	Warn           func(text string) // adds a warning to the pod's status

	warningsMu sync.Mutex // protects warnings while volumes are made and containers prepared

	FoundationsDone chan struct{} // closed when FoundationSteps have succeeded, or one has failed

	Shim    *execshim.Program
	onLines func(container string, lines []byte) // receives a copy of whole lines of a container
}

// LineSink returns onLines for one container.
func (s *Sandbox) LineSink(container string) func(lines []byte) {
	return func(lines []byte) { s.onLines(container, lines) }
}

// LogConfig returns the configuration of an instance's log.
func (s *Sandbox) LogConfig(container string, attempt int) output.LogConfig {
	return output.NewLogConfig(s.Pod, s.Plan, container, attempt)
}

// Options are what a sandbox is made from.
type Options struct {
	Plan       *pod.Plan
	Pod        store.Pod
	Namespaces Namespaces
	Handoff    *handoff.Record
	Ports      *network.HostPorts
	Shim       *execshim.Program
	OnLines    func(container string, lines []byte)
	Warn       func(text string)
}

// New returns a sandbox of which nothing exists yet. attempt numbers the pod's sandboxes from 0.
func New(o Options, attempt int) *Sandbox {
	s := &Sandbox{
		Plan: o.Plan, Attempt: attempt, Pod: o.Pod, Dir: DirOf(o.Pod),
		Namespaces: o.Namespaces, Handoff: o.Handoff, onLines: o.OnLines,
		Shim: o.Shim, Freezer: newFreezer(false), FoundationsDone: make(chan struct{}),
	}
	s.Warn = func(text string) {
		s.addWarning(text) // createSandbox (package runner) replaces the pod's warnings by the sandbox's
		o.Warn(text)
	}
	s.Network = network.New(o.Plan, o.Pod, o.Namespaces.Net, o.Handoff.PodInit, o.Ports)
	s.Network.CgroupDone, s.Network.Warn = s.FoundationsDone, s.Warn
	return s
}

// DirOf returns the directory of a pod's sandbox.
func DirOf(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "sandbox") }

// step is one part of a sandbox. Its undo accepts a part that is made in part or not at all.
type step struct {
	name string
	make func() error
	undo func() error
}

// connectionSteps returns the steps of the network, which a container needs only when its program runs.
func (s *Sandbox) connectionSteps() []step {
	return []step{
		{"network", s.Connect, s.Disconnect},
		{"published ports", s.ServePorts, s.Ports.Close},
	}
}

// FoundationSteps returns the steps of the foundations: what must exist before a container can be created.
func (s *Sandbox) FoundationSteps() []step {
	return []step{
		{"directory", s.makeEtcFiles, s.removeDir},
		{"common mounts", s.mountCommon, func() error { return s.SharedMountSpec().Unmount() }},
		{"directory for root file systems", s.makeTraversableDir, s.removeTraversableDir},
		{"volumes", s.makeVolumes, s.unmountVolumes},
		{"pod cgroup", s.makeCgroup, s.removeCgroup},
		{"shared PID namespace", s.startPauseProcess, s.stopPauseProcess},
	}
}

// RegisterUndo registers the undo of all steps. It accepts a sandbox that is made only in part.
func (s *Sandbox) RegisterUndo() {
	for _, step := range append(s.connectionSteps(), s.FoundationSteps()...) {
		s.undo.Push("remove "+step.name, step.undo)
	}
}

// Create makes everything the pod's containers share, or nothing. The foundations and the network are made
// concurrently; containers can be created once the foundations exist. On a failure it calls abandon, which
// returns when no prepared container is left.
func (s *Sandbox) Create(abandon func()) error {
	s.RegisterUndo()
	var connected error
	var connecting sync.WaitGroup
	connecting.Go(func() { connected = RunSteps(s.connectionSteps()) })
	err := RunSteps(s.FoundationSteps())
	if err == nil {
		s.warnOOMScores()
		s.warnCapabilities()
	} else {
		abandon()
	}
	close(s.FoundationsDone)
	connecting.Wait()
	if connected != nil {
		err = connected
	}
	if err == nil {
		err = s.WriteNameFiles()
	}
	s.warningsMu.Lock()
	s.warnings = append(s.Network.Warnings, s.warnings...)
	s.warningsMu.Unlock()
	if err == nil {
		return nil
	}
	abandon()
	if uerr := s.undo.Undo(); uerr != nil {
		fmt.Fprintln(os.Stderr, "undo sandbox:", uerr)
	}
	return err
}

// RunSteps runs the steps in order, up to the first failure.
func RunSteps(steps []step) error {
	for _, step := range steps {
		if err := step.make(); err != nil {
			return err
		}
	}
	return nil
}

// Recover takes over what another supervisor has made, in whole or in part.
func (s *Sandbox) Recover(pause procfs.Process, cgroup string) (err error) {
	if s.PauseProcess = pause; pause.PID != 0 {
		s.Handoff.Exits.Track(pause)
	}
	if cgroup != "" {
		if s.Cgroup, err = cgroups.Reopen(cgroup); err != nil {
			return err
		}
		s.Freezer = newFreezer(s.Cgroup.FreezeRequested())
	}
	s.RegisterUndo()
	close(s.FoundationsDone)
	return nil
}

// Remove undoes the sandbox. The containers must be gone.
func (s *Sandbox) Remove() error { return s.undo.Undo() }

// ServePorts serves the pod's host ports.
func (s *Sandbox) ServePorts() error { return s.Ports.Serve(s.Plan, &s.Network) }

// SharedMountSpec returns the namespaces and files that all containers of the pod mount.
func (s *Sandbox) SharedMountSpec() volumes.SharedMountSpec {
	return volumes.SharedMountSpec{Dir: filepath.Join(s.Dir, "shared"), NetNS: s.Net, IPCNS: s.IPC, Label: s.Plan.FileLabel}
}

func (s *Sandbox) mountCommon() error {
	_, err := s.SharedMountSpec().Mount()
	return err
}

// makeCgroup makes the pod's cgroup where the host allows it. Elsewhere a pod with limits runs without
// them, and has a warning.
func (s *Sandbox) makeCgroup() error {
	want := PodLimits(s.Plan.Resources)
	subtree, err := cgroups.Delegated(podinit.PID())
	if err == nil {
		s.Cgroup, err = subtree.CreatePod("podrun-"+s.Plan.UID, want, []int{podinit.PID()})
	}
	if err == nil {
		err = subtree.Lacks(want)
	}
	switch {
	case err == nil:
	case s.Plan.RequireLimits:
		return fmt.Errorf("limits are required, but %w", err)
	case s.Plan.Resources.Limited() && s.Cgroup == nil:
		s.addWarning("limits are not enforced: " + err.Error() + "; " + delegation.ProcessLimitNote(os.Geteuid() == 0 && RootIsHostRoot()))
	case s.Plan.Resources.Limited():
		s.addWarning("limits are not enforced: " + err.Error())
	}
	return nil
}

// Limits returns the cgroup limits for resources of a Plan.
func Limits(r pod.Resources) cgroups.Limits {
	return cgroups.Limits{
		CPURequest: r.CPURequest, CPULimit: r.CPULimit,
		MemoryLimit: r.MemoryLimit, MemoryMin: r.MemoryMin, MemoryLow: r.MemoryLow, MemoryHigh: r.MemoryHigh,
		Pids: r.Pids, HugePages: r.HugePages,
	}
}

// PodLimits returns the limits of a pod as a whole. Its pids.max is the pod's own limit. Without one it is the sum
// of its containers' limits, but at least DefaultPids. Without any limit it is 0: package cgroups then sets
// DefaultPids.
func PodLimits(r pod.Resources) cgroups.Limits {
	l := Limits(r)
	if l.Pids > 0 && !r.PodPids {
		l.Pids = max(l.Pids, cgroups.DefaultPids)
	}
	return l
}

func (s *Sandbox) removeCgroup() error {
	if s.Cgroup == nil {
		return nil
	}
	return s.Cgroup.Remove()
}

func (s *Sandbox) startPauseProcess() error {
	if !s.Plan.ShareProcessNamespace {
		return nil
	}
	pid, err := podinit.StartPause(s.User, slices.DeleteFunc([]string{s.Net, s.IPC, s.UTS}, func(path string) bool { return path == "" })...)
	if err != nil {
		return fmt.Errorf("start the shared PID namespace: %w", err)
	}
	st, ok := procfs.Lookup(pid)
	if !ok {
		return errors.New("start the shared PID namespace: its first process has ended")
	}
	s.PauseProcess = st.Process
	return nil
}

func (s *Sandbox) stopPauseProcess() error {
	if s.PauseProcess.PID == 0 {
		return nil
	}
	if err := s.PauseProcess.Kill(unix.SIGKILL); err != nil && err != unix.ESRCH {
		return fmt.Errorf("end the shared PID namespace: %w", err)
	}
	if _, err := s.Handoff.Exits.Wait(s.PauseProcess); err != nil {
		return fmt.Errorf("end the shared PID namespace: %w", err)
	}
	s.Handoff.Exits.Forget(s.PauseProcess)
	return nil
}

// ConfigError is the error of a container that cannot be made from its configuration. A retry helps only
// after something else has changed. The kubelet's reason for it is CreateContainerConfigError.
type ConfigError struct{ err error }

func (e ConfigError) Error() string { return e.err.Error() }

// NewConfigError returns a ConfigError with err as its cause.
func NewConfigError(err error) error { return ConfigError{err} }
