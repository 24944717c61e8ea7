package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/moby/sys/signal"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/undo"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// container is one running instance of a container of the Plan.
type container struct {
	plan     *pod.Container
	attempt  int
	who      identity
	ct       *libcontainer.Container
	process  // of its init; nobody's before it runs
	log      *logFile
	terminal *terminal // nil without tty: true
	stdin    *os.File  // the write end of its input, where it has one and nobody has ended it
	audience *audience
	beside   *container // while it is made: whose PID namespace it is to share
	inputs   sync.Mutex // held while stdin is looked at
	message  string     // the file bound at terminationMessagePath
	env      []string   // of its process, and of commands in it
	args     []string   // of its process, once made
	early    bool       // it is made before its time: see prepare
	first    bool       // there is no other that runs then
	waiting  *waiting   // while its process has yet to execute its program
	outputs  []*stream  // that nobody reads yet
	mntns    string     // identifies its processes in a shared PID namespace
	mounts   *os.File   // keeps that from being another's: see holdMountNamespace
	cleanup  undo.Stack
	execs    sync.WaitGroup
	entry    entry
	end      *ended // known before it is adopted
	life     lifetime

	confinement confinement
	freezer     *freezer // of the pod
}

// startError is a container whose process could not be run. code is 127 or 126
// as a shell would have it, else 128.
type startError struct {
	error
	code int
}

// newContainer is one that is to be made.
func newContainer(s *sandbox, c *pod.Container, attempt int) *container {
	return &container{plan: s.withheld(c), attempt: attempt, audience: newAudience(), freezer: s.freezer}
}

// startContainer makes and starts one instance. The error is a configError, a
// startError, or a failure to create.
// It shares the PID namespace of beside, if that is not nil.
func startContainer(s *sandbox, c *pod.Container, attempt int, beside *container) (*container, error) {
	x := newContainer(s, c, attempt)
	x.beside = beside
	s.warnOfWithheld(c, s.warn) // an ephemeral container may come after the sandbox
	if err := x.make(context.Background(), s); err != nil {
		return nil, err
	}
	if err := x.start(s); err != nil {
		return nil, err
	}
	return x, nil
}

// make makes an instance up to the moment at which its process executes its program, or
// nothing of it.
func (x *container) make(ctx context.Context, s *sandbox) error {
	if err := x.freezer.enter(ctx); err != nil {
		return err
	}
	defer x.freezer.leave()
	err := x.create(s)
	if err != nil {
		x.giveUp(s)
	}
	return err
}

// start has the process execute its program. If it does not, nothing is left.
func (x *container) start(s *sandbox) error {
	if err := x.freezer.enter(context.Background()); err != nil {
		return err
	}
	defer x.freezer.leave()
	err := x.catchUp(s)
	if err == nil {
		err = x.execute(s)
	}
	if err != nil {
		x.giveUp(s)
	}
	return err
}

// catchUp does for a container that was made early what has to be done when it starts.
func (x *container) catchUp(s *sandbox) error {
	if !x.early {
		return nil
	}
	if err := x.renewHosts(s); err != nil {
		return err
	}
	return x.openLog(s)
}

// renewHosts is for each start but the first.
func (x *container) renewHosts(s *sandbox) error {
	if x.attempt == 0 {
		return nil
	}
	return s.writeHosts()
}

// id names the instance within its pod; libcontainer keeps its state under it.
func (x *container) id() string { return x.plan.Name + "-" + strconv.Itoa(x.attempt) }

// cleanUpLater makes cleanup what it must be for an instance, however far it came.
func (x *container) cleanUpLater(s *sandbox) {
	x.cleanup.Push("unmount root file system", func() error { return x.hide(s) })
	x.cleanup.Push("unmount root file system", func() error { return volumes.UnmountRootfs(x.rootfs(s)) })
	x.cleanup.Push("remove environment", func() error { return x.dropEnv(s) })
	x.cleanup.Push("remove termination log", func() error { return volumes.RemoveTree(x.messageFile(s)) })
	x.cleanup.Push("unmount parts of volumes", func() error { return volumes.UnmountBelow(s.stagingDir(x.id())) })
	x.cleanup.Push("unmount /dev", func() error { return volumes.UnmountDev(x.dev(s)) })
	x.cleanup.Push("destroy container", func() error {
		if x.ct == nil { // somebody was killed while he made it, if anything is there at all
			return os.RemoveAll(filepath.Join(s.store.LibcontainerDir(), x.id()))
		}
		return x.ct.Destroy()
	})
}

func (x *container) rootfs(s *sandbox) string { return filepath.Join(s.store.RootfsDir(), x.id()) }
func (x *container) dev(s *sandbox) string    { return filepath.Join(s.dir, "dev-"+x.id()) }
func (x *container) messageFile(s *sandbox) string {
	return filepath.Join(s.writtenDir(), "termination-log-"+x.id())
}

func (x *container) create(s *sandbox) error {
	x.cleanUpLater(s)
	env, err := x.resolve(s)
	if err != nil {
		return err
	}
	layers, err := s.ownLayers(x.plan.Layers)
	if err != nil {
		return err
	}
	root, err := volumes.MountRootfs(x.rootfs(s), layers, false, x.plan.FileLabel) // libcontainer makes it read-only, once every mount target is there
	if err != nil {
		return fmt.Errorf("mount root file system: %w", err)
	}
	if x.who, err = resolveUser(root, x.plan, s.idMapped); err != nil {
		return newConfigError(err)
	}
	if err := x.makeMessageFile(s); err != nil {
		return err
	}
	if err := x.mountDev(s); err != nil {
		return err
	}
	at := newPlace(s, x.plan, root, x.dev(s))
	at.terminationLog = x.message
	if x.beside != nil && at.pidns == "" {
		at.pidns = fmt.Sprintf("/proc/%d/ns/pid", x.beside.PID)
	}
	if !x.early {
		if err := x.renewHosts(s); err != nil {
			return err
		}
	}
	if err := x.bindVolumes(s, &at, env.Vars); err != nil {
		return err
	}
	if x.early && !x.first && at.placed < len(x.plan.Mounts) {
		return errLinked
	}
	if at.rootfs, err = x.expose(s, root); err != nil {
		return err
	}
	spec := runtimeSpec(s.plan, x.plan, at, x.who)
	spec.Process.Args, spec.Process.Env = env.Args, env.Env
	if spec.Linux.Seccomp, err = seccompFilter(x.plan, spec); err != nil {
		return newConfigError(err)
	}
	if s.cgroup != nil {
		spec.Linux.Resources.Unified = s.cgroup.ContainerValues(limits(x.plan.Resources))
	}
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{
		CgroupName: x.id(), Spec: spec, NoNewKeyring: true,
		RootlessCgroups: s.cgroup == nil, // no cgroup to be had: libcontainer must not insist
	})
	if err != nil {
		return newConfigError(fmt.Errorf("make container configuration: %w", err))
	}
	joinUser(s.user, config)
	x.harden(s, config)
	if x.confinement, err = confine(s, x.plan, config); err != nil {
		return newConfigError(err)
	}
	if x.early && x.confinement.by == nil {
		return errLate
	}
	return x.beginBesideLog(s, config, spec.Process)
}

// beginBesideLog makes the container's process, and beside it the log of one that is to be
// started at once: nothing is written to that before.
func (x *container) beginBesideLog(s *sandbox, config *configs.Config, p *specs.Process) (err error) {
	opened := make(chan error, 1)
	if x.early {
		opened <- nil
	} else {
		go func() { opened <- x.openLog(s) }()
	}
	defer func() { err = cmp.Or(<-opened, err) }()
	if x.ct, err = libcontainer.Create(s.store.LibcontainerDir(), x.id(), config); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	return x.begin(s, p)
}

// newProcess is a process of the container, with its identity and confinement.
func (x *container) newProcess(args, env []string, cwd string) *libcontainer.Process {
	caps := x.plan.Capabilities
	return &libcontainer.Process{
		Args: args, Env: env, Cwd: cwd,
		UID: x.who.uid, GID: x.who.gid, AdditionalGroups: x.who.groups,
		Capabilities:    &configs.Capabilities{Bounding: caps, Effective: caps, Permitted: caps},
		NoNewPrivileges: &x.plan.NoNewPrivileges,
		LogLevel:        libcontainerLogs,
	}
}

// finish ends what else runs in an instance whose process has ended, and brings
// its output to the log, to the last line.
func (x *container) finish(s *sandbox) {
	x.life.end()
	x.killMountNamespace()
	x.killCgroup(s)
	x.execs.Wait()
	x.entry.close()
	x.closeStreams(s.estate)
}

// signal sends a signal to the container's process, and SIGKILL to all of a container
// that shares its PID namespace. One that has ended is fine. libcontainer does it, and so
// not while a command is being started in there; but it opens a file to see whether the
// process lives, and takes none to be had for its end: without descriptors a pod could
// not be ended.
func (x *container) signal(sig unix.Signal) error {
	if x.end != nil {
		return nil
	}
	err := x.ct.Signal(sig)
	if errors.Is(err, libcontainer.ErrNotRunning) {
		err = x.process.signalUnreaped(sig)
	}
	if err != nil {
		return fmt.Errorf("signal container %s: %w", x.plan.Name, err)
	}
	return nil
}

const maxSignal = 64 // SIGRTMAX

// stopSignal is the manifest's or the image's, else SIGTERM: by name with or
// without SIG, or by number.
func (x *container) stopSignal() unix.Signal {
	sig, err := signal.ParseSignal(x.plan.StopSignal)
	if err != nil || sig > maxSignal {
		return unix.SIGTERM
	}
	return sig
}

// lifetime ends what is asked of an instance when its process has ended.
type lifetime struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
}

func (l *lifetime) begin() context.Context {
	l.once.Do(func() { l.ctx, l.cancel = context.WithCancel(context.Background()) })
	return l.ctx
}

func (l *lifetime) end() {
	l.begin()
	l.cancel()
}

// context ends when the instance's process has ended.
func (x *container) context() context.Context { return x.life.begin() }

// acquire keeps an instance from being removed until release.
func (x *container) acquire() { x.execs.Add(1) }

func (x *container) release() { x.execs.Done() }

func containerID(plan *pod.Plan, x *container) string {
	return plan.UID + "-" + x.id()
}

// remove takes down what was made for an instance of which no process is left.
func (x *container) remove() {
	if err := x.cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "remove container %s: %v\n", x.plan.Name, err)
	}
}

// newPlace tells one container where things are.
func newPlace(s *sandbox, c *pod.Container, rootfs, dev string) place {
	at := place{
		rootfs: rootfs, dev: dev,
		netns: s.net, ipcns: s.ipc, utsns: s.uts,
		hostPID:       s.plan.HostPID,
		sys:           s.templates().Templates().Sys,
		hosts:         filepath.Join(s.writtenDir(), "hosts"),
		hostname:      filepath.Join(s.writtenDir(), "hostname"),
		resolv:        filepath.Join(s.writtenDir(), "resolv.conf"),
		ttyGroup:      s.idMapped("gid_map", 5),
		oomScoreFloor: oomScoreFloor(),
	}
	if s.plan.HostIPC {
		at.ipcns = ""
	}
	if s.pause.PID != 0 {
		at.pidns = fmt.Sprintf("/proc/%d/ns/pid", s.pause.PID)
	}
	if s.cgroup != nil {
		at.cgroup = s.cgroup.ContainerPath(c.Name)
	}
	return at
}
