package container

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

	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/undo"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// Container is one running instance of a container of the Plan.
type Container struct {
	Plan           *pod.Container
	Attempt        int
	Identity       Identity
	Libcontainer   *libcontainer.Container
	procfs.Process // of its init; nobody's before it runs
	Log            *output.Log
	terminal       *output.Terminal // nil without tty: true
	stdin          *os.File         // the write end of its input, where it has one and nobody has ended it
	Broadcaster    *output.Broadcaster
	pidTarget      *Container       // while it is made: whose PID namespace it is to share
	stdinMu        sync.Mutex       // held while stdin is looked at
	messagePath    string           // the file bound at terminationMessagePath
	env            []string         // of its process, and of commands in it
	args           []string         // of its process, once made
	Prewarmed      bool             // it is made before its time: see prepare
	FirstInSandbox bool             // there is no other that runs then
	Pending        *pendingInit     // while its process has yet to execute its program
	unreadOutputs  []*output.Stream // that nobody reads yet
	mntns          string           // identifies its processes in a shared PID namespace
	mntnsFile      *os.File         // keeps that from being another's: see pinMountNamespace
	Cleanup        undo.Stack
	inUse          sync.WaitGroup
	pidfd          pidfdCache
	Exit           *Exit // known before it is adopted
	life           lifetime

	confinement confinement
	freezer     *sandbox.Freezer // of the pod
}

// StartError is a container whose process could not be run. code is 127 or 126
// as a shell would have it, else 128.
type StartError struct {
	error
	Code int
}

// New is one that is to be made.
func New(s *sandbox.Sandbox, c *pod.Container, attempt int) *Container {
	return &Container{Plan: s.WithoutDenied(c), Attempt: attempt, Broadcaster: output.NewBroadcaster(), freezer: s.Freezer}
}

// Start makes and starts one instance. The error is a ConfigError, a
// StartError, or a failure to create.
// It shares the PID namespace of beside, if that is not nil.
func Start(s *sandbox.Sandbox, c *pod.Container, attempt int, beside *Container) (*Container, error) {
	x := New(s, c, attempt)
	x.pidTarget = beside
	s.WarnDenied(c, s.Warn) // an ephemeral container may come after the sandbox
	if err := x.Create(context.Background(), s); err != nil {
		return nil, err
	}
	if err := x.Start(s); err != nil {
		return nil, err
	}
	return x, nil
}

// Create makes an instance up to the moment at which its process executes its program, or
// nothing of it.
func (x *Container) Create(ctx context.Context, s *sandbox.Sandbox) error {
	if err := x.freezer.Acquire(ctx); err != nil {
		return err
	}
	defer x.freezer.Release()
	err := x.build(s)
	if err != nil {
		x.Discard(s)
	}
	return err
}

// Start has the process execute its program. If it does not, nothing is left.
func (x *Container) Start(s *sandbox.Sandbox) error {
	if err := x.freezer.Acquire(context.Background()); err != nil {
		return err
	}
	defer x.freezer.Release()
	err := x.finishPrewarm(s)
	if err == nil {
		err = x.execInit(s)
	}
	if err != nil {
		x.Discard(s)
	}
	return err
}

// finishPrewarm does for a container that was made early what has to be done when it starts.
func (x *Container) finishPrewarm(s *sandbox.Sandbox) error {
	if !x.Prewarmed {
		return nil
	}
	if err := x.rewriteHosts(s); err != nil {
		return err
	}
	return x.openLog(s)
}

// rewriteHosts is for each start but the first.
func (x *Container) rewriteHosts(s *sandbox.Sandbox) error {
	if x.Attempt == 0 {
		return nil
	}
	return s.WriteHosts()
}

// ID names the instance within its pod; libcontainer keeps its state under it.
func (x *Container) ID() string { return x.Plan.Name + "-" + strconv.Itoa(x.Attempt) }

// registerCleanup makes cleanup what it must be for an instance, however far it came.
func (x *Container) registerCleanup(s *sandbox.Sandbox) {
	x.Cleanup.Push("unmount root file system", func() error { return x.unexposeRootfs(s) })
	x.Cleanup.Push("unmount root file system", func() error { return volumes.UnmountRootfs(x.Rootfs(s)) })
	x.Cleanup.Push("remove environment", func() error { return x.removeEnv(s) })
	x.Cleanup.Push("remove termination log", func() error { return volumes.RemoveTree(x.messageFilePath(s)) })
	x.Cleanup.Push("unmount parts of volumes", func() error { return volumes.UnmountBelow(s.StagingDir(x.ID())) })
	x.Cleanup.Push("unmount /dev", func() error { return volumes.UnmountDev(x.devDir(s)) })
	x.Cleanup.Push("destroy container", func() error {
		if x.Libcontainer == nil { // somebody was killed while he made it, if anything is there at all
			return os.RemoveAll(filepath.Join(s.Store.LibcontainerDir(), x.ID()))
		}
		return x.Libcontainer.Destroy()
	})
}

// Rootfs is the directory of the instance's root file system.
func (x *Container) Rootfs(s *sandbox.Sandbox) string {
	return filepath.Join(s.Store.RootfsDir(), x.ID())
}
func (x *Container) devDir(s *sandbox.Sandbox) string { return filepath.Join(s.Dir, "dev-"+x.ID()) }
func (x *Container) messageFilePath(s *sandbox.Sandbox) string {
	return filepath.Join(s.EtcDir(), "termination-log-"+x.ID())
}

func (x *Container) build(s *sandbox.Sandbox) error {
	x.registerCleanup(s)
	env, err := x.resolveEnv(s)
	if err != nil {
		return err
	}
	layers, err := s.Layers(x.Plan.Layers)
	if err != nil {
		return err
	}
	root, err := volumes.MountRootfs(x.Rootfs(s), layers, false, x.Plan.FileLabel) // libcontainer makes it read-only, once every mount target is there
	if err != nil {
		return fmt.Errorf("mount root file system: %w", err)
	}
	if x.Identity, err = resolveUser(root, x.Plan, s.IDMapped); err != nil {
		return sandbox.NewConfigError(err)
	}
	if err := x.makeMessageFile(s); err != nil {
		return err
	}
	if err := x.mountDev(s); err != nil {
		return err
	}
	at := newSpecConfig(s, x.Plan, root, x.devDir(s))
	at.terminationLog = x.messagePath
	if x.pidTarget != nil && at.pidns == "" {
		at.pidns = fmt.Sprintf("/proc/%d/ns/pid", x.pidTarget.PID)
	}
	if !x.Prewarmed {
		if err := x.rewriteHosts(s); err != nil {
			return err
		}
	}
	if err := x.prepareMounts(s, &at, env.Vars); err != nil {
		return err
	}
	if x.Prewarmed && !x.FirstInSandbox && at.premounted < len(x.Plan.Mounts) {
		return errLinked
	}
	if at.rootfs, err = x.exposeRootfs(s, root); err != nil {
		return err
	}
	spec := runtimeSpec(s.Plan, x.Plan, at, x.Identity)
	spec.Process.Args, spec.Process.Env = env.Args, env.Env
	if spec.Linux.Seccomp, err = seccompFilter(x.Plan, spec); err != nil {
		return sandbox.NewConfigError(err)
	}
	if s.Cgroup != nil {
		spec.Linux.Resources.Unified = s.Cgroup.ContainerValues(sandbox.Limits(x.Plan.Resources))
	}
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{
		CgroupName: x.ID(), Spec: spec, NoNewKeyring: true,
		RootlessCgroups: s.Cgroup == nil, // no cgroup to be had: libcontainer must not insist
	})
	if err != nil {
		return sandbox.NewConfigError(fmt.Errorf("make container configuration: %w", err))
	}
	joinUserNamespace(s.User, config)
	x.applyLimits(s, config)
	if x.confinement, err = newConfinement(s, x.Plan, config); err != nil {
		return sandbox.NewConfigError(err)
	}
	if x.Prewarmed && x.confinement.program == nil {
		return errFilterByLibcontainer
	}
	return x.startInitAndLog(s, config, spec.Process)
}

// startInitAndLog makes the container's process, and beside it the log of one that is to be
// started at once: nothing is written to that before.
func (x *Container) startInitAndLog(s *sandbox.Sandbox, config *configs.Config, p *specs.Process) (err error) {
	opened := make(chan error, 1)
	if x.Prewarmed {
		opened <- nil
	} else {
		go func() { opened <- x.openLog(s) }()
	}
	defer func() { err = cmp.Or(<-opened, err) }()
	if x.Libcontainer, err = libcontainer.Create(s.Store.LibcontainerDir(), x.ID(), config); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	return x.startInit(s, p)
}

// newProcess is a process of the container, with its identity and confinement.
func (x *Container) newProcess(args, env []string, cwd string) *libcontainer.Process {
	caps := x.Plan.Capabilities
	return &libcontainer.Process{
		Args: args, Env: env, Cwd: cwd,
		UID: x.Identity.uid, GID: x.Identity.gid, AdditionalGroups: x.Identity.groups,
		Capabilities:    &configs.Capabilities{Bounding: caps, Effective: caps, Permitted: caps},
		NoNewPrivileges: &x.Plan.NoNewPrivileges,
		LogLevel:        libcontainerLogLevel,
	}
}

// Finish ends what else runs in an instance whose process has ended, and brings
// its output to the log, to the last line.
func (x *Container) Finish(s *sandbox.Sandbox) {
	x.life.end()
	x.killByMountNamespace()
	x.killCgroup(s)
	x.inUse.Wait()
	x.pidfd.close()
	x.closeStreams(s.Handoff)
}

// Signal sends a signal to the container's process, and SIGKILL to all of a container
// that shares its PID namespace. One that has ended is fine. libcontainer does it, and so
// not while a command is being started in there; but it opens a file to see whether the
// process lives, and takes none to be had for its end: without descriptors a pod could
// not be ended.
func (x *Container) Signal(sig unix.Signal) error {
	if x.Exit != nil {
		return nil
	}
	err := x.Libcontainer.Signal(sig)
	if errors.Is(err, libcontainer.ErrNotRunning) {
		err = x.Process.SignalUnreaped(sig)
	}
	if err != nil {
		return fmt.Errorf("signal container %s: %w", x.Plan.Name, err)
	}
	return nil
}

const MaxSignal = 64 // SIGRTMAX

// StopSignal is the manifest's or the image's, else SIGTERM: by name with or
// without SIG, or by number.
func (x *Container) StopSignal() unix.Signal {
	sig, err := signal.ParseSignal(x.Plan.StopSignal)
	if err != nil || sig > MaxSignal {
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

// Context ends when the instance's process has ended.
func (x *Container) Context() context.Context { return x.life.begin() }

// Acquire keeps an instance from being removed until release.
func (x *Container) Acquire() { x.inUse.Add(1) }

// Release undoes one Acquire.
func (x *Container) Release() { x.inUse.Done() }

// FullID is an instance's id that no other pod has: the pod's UID and the id within the pod.
func FullID(plan *pod.Plan, x *Container) string {
	return plan.UID + "-" + x.ID()
}

// Remove takes down what was made for an instance of which no process is left.
func (x *Container) Remove() {
	if err := x.Cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "remove container %s: %v\n", x.Plan.Name, err)
	}
}

// newSpecConfig tells one container where things are.
func newSpecConfig(s *sandbox.Sandbox, c *pod.Container, rootfs, dev string) specConfig {
	at := specConfig{
		rootfs: rootfs, dev: dev,
		netns: s.Net, ipcns: s.IPC, utsns: s.UTS,
		hostPID:       s.Plan.HostPID,
		sys:           s.SharedMounts().Templates().Sys,
		hosts:         filepath.Join(s.EtcDir(), "hosts"),
		hostname:      filepath.Join(s.EtcDir(), "hostname"),
		resolv:        filepath.Join(s.EtcDir(), "resolv.conf"),
		ttyGroup:      s.IDMapped("gid_map", 5),
		oomScoreFloor: sandbox.OOMScoreFloor(),
	}
	if s.Plan.HostIPC {
		at.ipcns = ""
	}
	if s.PauseProcess.PID != 0 {
		at.pidns = fmt.Sprintf("/proc/%d/ns/pid", s.PauseProcess.PID)
	}
	if s.Cgroup != nil {
		at.cgroup = s.Cgroup.ContainerPath(c.Name)
	}
	return at
}
