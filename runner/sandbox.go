package runner

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
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/undo"
	"github.com/podrun/podrun/netns/resolvconf"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// sandbox is what a pod's containers share.
type sandbox struct {
	plan    *pod.Plan
	store   store.Pod
	attempt int    // how many there were before
	dir     string // on tmpfs; holds mounts and files bound into containers

	shared
	network
	estate   *estate
	pause    process // PID 1 of the shared PID namespace; nobody without one
	cgroup   *cgroups.Pod
	freezer  *freezer
	filters  sync.Map // of the default profile, by capabilities: see confine
	warnings []string
	events   []resolvconf.Event // that the pod's are to tell
	undo     undo.Stack
	warn     func(text string) // tells the user

	making sync.Mutex // of warnings, while volumes are made and containers prepared

	laid chan struct{} // closed when all is there that a container is made of, or cannot be had

	trampoline *trampoline.Program
	show       func(container string, lines []byte) // copies whole lines of a container elsewhere too
}

// shower is show for one container.
func (s *sandbox) shower(container string) func(lines []byte) {
	return func(lines []byte) { s.show(container, lines) }
}

// logPlace is where an instance's output goes.
func (s *sandbox) logPlace(container string, attempt int) logPlace {
	return placeLog(s.store, s.plan, container, attempt)
}

// sandboxOptions are what a sandbox is made from.
type sandboxOptions struct {
	plan       *pod.Plan
	store      store.Pod
	namespaces shared
	estate     *estate
	ports      *publisher
	trampoline *trampoline.Program
	show       func(container string, lines []byte)
	warn       func(text string)
}

func newSandbox(o sandboxOptions, attempt int) *sandbox {
	s := &sandbox{
		plan: o.plan, attempt: attempt, store: o.store, dir: sandboxDir(o.store),
		shared: o.namespaces, estate: o.estate, show: o.show,
		trampoline: o.trampoline, freezer: newFreezer(false), laid: make(chan struct{}),
	}
	s.warn = func(text string) {
		s.addWarning(text) // else what is noticed while it is made is lost with the last sandbox's
		o.warn(text)
	}
	s.network = newNetwork(o.plan, o.store, o.namespaces.net, o.estate.keeper, o.ports)
	s.network.laid, s.network.warn = s.laid, s.warn
	return s
}

// sandboxDir is the directory of a pod's sandbox.
func sandboxDir(at store.Pod) string { return filepath.Join(at.RuntimeDir(), "sandbox") }

// step is one part of a sandbox. Its undo accepts what is half made, or not at all.
type step struct {
	name string
	make func() error
	undo func() error
}

// connections are what no container needs before its program runs.
func (s *sandbox) connections() []step {
	return []step{
		{"network", s.connect, s.disconnect},
		{"published ports", s.publish, s.ports.close},
	}
}

// foundations are what containers are made of.
func (s *sandbox) foundations() []step {
	return []step{
		{"directory", s.files, s.removeFiles},
		{"shared mounts", s.mountShared, func() error { return s.templates().Unmount() }},
		{"users of its own", s.makeUsers, s.removeUsers},
		{"volumes", s.makeVolumes, s.unmountVolumes},
		{"pod cgroup", s.limit, s.removeCgroup},
		{"OOM scores", s.checkOOMScores, func() error { return nil }},
		{"capabilities", s.checkCapabilities, func() error { return nil }},
		{"shared PID namespace", s.sharePIDs, s.endPause},
	}
}

// undoLater makes undo what it must be for a sandbox, however far it came.
func (s *sandbox) undoLater() {
	for _, step := range append(s.connections(), s.foundations()...) {
		s.undo.Push("remove "+step.name, step.undo)
	}
}

// create makes everything the pod's containers share, or nothing. Its two halves are made
// beside each other; once the foundations are laid containers can be made. abandon is called
// when there are to be none, and returns when there are none.
func (s *sandbox) create(abandon func()) error {
	s.undoLater()
	var connected error
	var connecting sync.WaitGroup
	connecting.Go(func() { connected = makeAll(s.connections()) })
	err := makeAll(s.foundations())
	if err != nil {
		abandon()
	}
	close(s.laid)
	connecting.Wait()
	if connected != nil {
		err = connected
	}
	if err == nil {
		err = s.nameFiles()
	}
	s.making.Lock()
	s.warnings = append(s.network.warnings, s.warnings...)
	s.making.Unlock()
	if err == nil {
		return nil
	}
	abandon()
	if uerr := s.undo.Undo(); uerr != nil {
		fmt.Fprintln(os.Stderr, "undo sandbox:", uerr)
	}
	return err
}

// makeAll makes one after another, up to the first that cannot be made.
func makeAll(steps []step) error {
	for _, step := range steps {
		if err := step.make(); err != nil {
			return err
		}
	}
	return nil
}

// adopt is create for what another supervisor has made, whole or in part.
func (s *sandbox) adopt(pause process, cgroup string) (err error) {
	if s.pause = pause; pause.PID != 0 {
		s.estate.ends.adopt(pause)
	}
	if cgroup != "" {
		if s.cgroup, err = cgroups.Reopen(cgroup); err != nil {
			return err
		}
		s.freezer = newFreezer(s.cgroup.ToFreeze())
	}
	s.undoLater()
	close(s.laid)
	return nil
}

// remove undoes the sandbox. Containers must be gone.
func (s *sandbox) remove() error { return s.undo.Undo() }

// publish lets the pod's ports of the host reach it.
func (s *sandbox) publish() error { return s.ports.serve(s.plan, &s.network) }

func (s *sandbox) templates() volumes.Sandbox {
	return volumes.Sandbox{Dir: filepath.Join(s.dir, "shared"), NetNS: s.net, IPCNS: s.ipc, Label: s.plan.FileLabel}
}

func (s *sandbox) mountShared() error {
	_, err := s.templates().MountTemplates()
	return err
}

// limit makes the pod cgroup where the host lets us. Where it does not, a pod
// that asks for limits runs without them, and says so.
func (s *sandbox) limit() error {
	want := limits(s.plan.Resources)
	subtree, err := cgroups.Delegated(stage.KeeperPID())
	if err == nil {
		s.cgroup, err = subtree.CreatePod("podrun-"+s.plan.UID, want, []int{stage.KeeperPID()})
	}
	if err == nil {
		err = subtree.Lacks(want)
	}
	switch {
	case err == nil:
	case s.plan.RequireLimits:
		return fmt.Errorf("limits are required, but %w", err)
	case s.plan.Resources.Limited() && s.cgroup == nil:
		s.addWarning("limits are not enforced: " + err.Error() + "; " + delegation.Processes(os.Geteuid() == 0 && mapsRoot()))
	case s.plan.Resources.Limited():
		s.addWarning("limits are not enforced: " + err.Error())
	}
	return nil
}

func limits(r pod.Resources) cgroups.Limits {
	return cgroups.Limits{
		CPURequest: r.CPURequest, CPULimit: r.CPULimit,
		MemoryLimit: r.MemoryLimit, MemoryMin: r.MemoryMin, MemoryLow: r.MemoryLow, MemoryHigh: r.MemoryHigh,
		HugePages: r.HugePages,
	}
}

func (s *sandbox) removeCgroup() error {
	if s.cgroup == nil {
		return nil
	}
	return s.cgroup.Remove()
}

func (s *sandbox) sharePIDs() error {
	if !s.plan.ShareProcessNamespace {
		return nil
	}
	pid, err := stage.StartPause(s.user, slices.DeleteFunc([]string{s.net, s.ipc, s.uts}, func(path string) bool { return path == "" })...)
	if err != nil {
		return fmt.Errorf("start the shared PID namespace: %w", err)
	}
	st, ok := stat(pid)
	if !ok {
		return errors.New("start the shared PID namespace: its first process has gone")
	}
	s.pause = st.process
	return nil
}

func (s *sandbox) endPause() error {
	if s.pause.PID == 0 {
		return nil
	}
	if err := s.pause.kill(unix.SIGKILL); err != nil && err != unix.ESRCH {
		return fmt.Errorf("end the shared PID namespace: %w", err)
	}
	if _, err := s.estate.ends.wait(s.pause); err != nil {
		return fmt.Errorf("end the shared PID namespace: %w", err)
	}
	s.estate.ends.forget(s.pause)
	return nil
}

// configError is a container that cannot be made from its configuration; trying
// again helps only when something else changes. The kubelet's word for it is
// CreateContainerConfigError.
type configError struct{ err error }

func (e configError) Error() string { return e.err.Error() }

func newConfigError(err error) error { return configError{err} }
