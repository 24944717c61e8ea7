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

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/procfs"
	"github.com/podrun/podrun/internal/undo"
	"github.com/podrun/podrun/runner/output"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// Container is one instance of a container of the Plan.
type Container struct {
	Plan           *pod.Container
	Attempt        int
	Identity       Identity
	Libcontainer   *libcontainer.Container
	procfs.Process // its first process; zero before that runs
	Log            *output.Log
	terminal       *output.Terminal // nil without tty: true
	stdin          *os.File         // write end of the standard input; nil without one or when it was closed
	Broadcaster    *output.Broadcaster
	pidTarget      *Container       // while it is made: the container whose PID namespace it joins
	stdinMu        sync.Mutex       // protects stdin
	messagePath    string           // the file that is bound at terminationMessagePath
	env            []string         // of its process and of commands in it
	args           []string         // of its process; set once it is made
	Prepared       bool             // made before it is due: see package prepared
	FirstInSandbox bool             // no container of the sandbox has been started yet
	Pending        *pendingInit     // set while its process has not executed its program yet
	unreadOutputs  []*output.Stream // outputs that are not read yet
	mntns          string           // identifies its processes in a shared PID namespace
	mntnsFile      *os.File         // keeps the kernel from reusing mntns: see pinMountNamespace
	Cleanup        undo.Stack
	inUse          sync.WaitGroup
	pidfd          pidfdCache
	Exit           *Exit // set for a recovered container that had exited already
	life           lifetime

	confinement confinement
	freezer     *sandbox.Freezer // the pod's
}

// StartError is the error of a container whose process could not be run. Code is 127 or 126 as in a shell,
// otherwise 128.
type StartError struct {
	error
	Code int
}

// New returns a Container for an instance that is not made yet.
func New(s *sandbox.Sandbox, c *pod.Container, attempt int) *Container {
	return &Container{Plan: s.WithoutDenied(c), Attempt: attempt, Broadcaster: output.NewBroadcaster(), freezer: s.Freezer}
}

// Start makes and starts one instance. The error is a ConfigError, a StartError, or a failure to create. If
// target is not nil, the instance joins the target's PID namespace.
func Start(s *sandbox.Sandbox, c *pod.Container, attempt int, target *Container) (*Container, error) {
	x := New(s, c, attempt)
	x.pidTarget = target
	s.WarnDenied(c, s.Warn) // an ephemeral container may be added after the sandbox was made
	if err := x.Create(context.Background(), s); err != nil {
		return nil, err
	}
	if err := x.Start(s); err != nil {
		return nil, err
	}
	return x, nil
}

// Create makes an instance up to the moment before its process executes its program. On an error nothing of
// it is left.
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

// Start lets the process execute its program. On an error nothing of the instance is left.
func (x *Container) Start(s *sandbox.Sandbox) error {
	if err := x.freezer.Acquire(context.Background()); err != nil {
		return err
	}
	defer x.freezer.Release()
	err := x.finishPrepared(s)
	if err == nil {
		err = x.execInit(s)
	}
	if err != nil {
		x.Discard(s)
	}
	return err
}

// finishPrepared does the part of a prepared container's creation that must wait until its start: it rewrites
// /etc/hosts and opens the log.
func (x *Container) finishPrepared(s *sandbox.Sandbox) error {
	if !x.Prepared {
		return nil
	}
	if err := x.rewriteHosts(s); err != nil {
		return err
	}
	return x.openLog(s)
}

// rewriteHosts writes /etc/hosts again for each start but the first.
func (x *Container) rewriteHosts(s *sandbox.Sandbox) error {
	if x.Attempt == 0 {
		return nil
	}
	return s.WriteHosts()
}

// ID returns the name of the instance within its pod; libcontainer stores its state under it.
func (x *Container) ID() string { return x.Plan.Name + "-" + strconv.Itoa(x.Attempt) }

// registerCleanup registers the undo steps of an instance. They accept an instance that is made only in
// part.
func (x *Container) registerCleanup(s *sandbox.Sandbox) {
	x.Cleanup.Push("withdraw root file system", func() error { return x.unexposeRootfs(s) })
	x.Cleanup.Push("unmount root file system", func() error { return x.unmountRootfs(s) })
	x.Cleanup.Push("remove environment", func() error { return x.removeEnv(s) })
	x.Cleanup.Push("remove termination log", func() error { return volumes.RemoveTree(x.messageFilePath(s)) })
	x.Cleanup.Push("unmount parts of volumes", func() error { return volumes.UnmountBelow(s.StagingDir(x.ID())) })
	x.Cleanup.Push("unmount /dev", func() error { return volumes.UnmountDev(x.devDir(s)) })
	x.Cleanup.Push("destroy container", func() error {
		if x.Libcontainer == nil { // a supervisor that was killed may have left a part of its state
			return os.RemoveAll(filepath.Join(s.Pod.LibcontainerDir(), x.ID()))
		}
		return x.Libcontainer.Destroy()
	})
}

// Rootfs returns the directory of the instance's root file system.
func (x *Container) Rootfs(s *sandbox.Sandbox) string {
	return filepath.Join(s.Pod.RootfsDir(), x.ID())
}
func (x *Container) devDir(s *sandbox.Sandbox) string { return filepath.Join(s.Dir, "dev-"+x.ID()) }
func (x *Container) messageFilePath(s *sandbox.Sandbox) string {
	return filepath.Join(s.EtcDir(), "termination-log-"+x.ID())
}

// build makes an instance up to its process, which has not executed its program yet.
func (x *Container) build(s *sandbox.Sandbox) error {
	x.registerCleanup(s)
	env, err := x.resolveEnv(s)
	if err != nil {
		return err
	}
	input, err := x.prepareRootfs(s, env.Vars)
	if err != nil {
		return err
	}
	spec := runtimeSpec(s.Plan, x.Plan, input, x.Identity)
	spec.Process.Args, spec.Process.Env = env.Args, env.Env
	config, err := x.configure(s, spec)
	if err != nil {
		return sandbox.NewConfigError(err)
	}
	if x.Prepared && x.confinement.program == nil {
		return errFilterByLibcontainer
	}
	if err := x.startInitAndLog(s, config, spec.Process); err != nil || !x.Prepared {
		return err
	}
	// The exec shim waits in 12 kB; libcontainer's init, a Go program, would take 5 MB and has to end first.
	return x.Libcontainer.Exec()
}

// prepareRootfs makes the root file system, /dev, and the mounts in them that do not wait for libcontainer. It
// returns what the specification needs to know of them.
func (x *Container) prepareRootfs(s *sandbox.Sandbox, vars map[string]string) (input specInput, err error) {
	if x.Prepared && x.Plan.KeepFiles {
		return input, errKeptFiles
	}
	layers, err := s.Layers(x.Plan.Layers)
	if err != nil {
		return input, err
	}
	root, err := x.mountRootfs(s, layers)
	if err != nil {
		return input, fmt.Errorf("mount root file system: %w", err)
	}
	if x.Identity, err = resolveUser(root, x.Plan, s.IDMapped); err != nil {
		return input, sandbox.NewConfigError(err)
	}
	if err := x.makeMessageFile(s); err != nil {
		return input, err
	}
	if err := x.mountDev(s); err != nil {
		return input, err
	}
	input = newSpecInput(s, x.Plan, root, x.devDir(s))
	input.terminationLog = x.messagePath
	if x.pidTarget != nil && input.pidns == "" {
		input.pidns = fmt.Sprintf("/proc/%d/ns/pid", x.pidTarget.PID)
	}
	if !x.Prepared {
		if err := x.rewriteHosts(s); err != nil {
			return input, err
		}
	}
	if err := x.prepareMounts(s, &input, vars); err != nil {
		return input, err
	}
	if x.Prepared && !x.FirstInSandbox && input.premounted < len(x.Plan.Mounts) {
		return input, errLinked
	}
	input.rootfs, err = x.exposeRootfs(s, root)
	return input, err
}

// configure returns libcontainer's configuration of an instance, and sets its confinement.
func (x *Container) configure(s *sandbox.Sandbox, spec *specs.Spec) (config *configs.Config, err error) {
	if spec.Linux.Seccomp, err = seccompFilter(x.Plan, spec); err != nil {
		return nil, err
	}
	if s.Cgroup != nil {
		spec.Linux.Resources.Unified = s.Cgroup.ContainerValues(sandbox.Limits(x.Plan.Resources))
	}
	config, err = specconv.CreateLibcontainerConfig(&specconv.CreateOpts{
		CgroupName: x.ID(), Spec: spec, NoNewKeyring: true,
		RootlessCgroups: s.Cgroup == nil, // without a cgroup libcontainer must not require one
	})
	if err != nil {
		return nil, fmt.Errorf("make container configuration: %w", err)
	}
	joinUserNamespace(s.User, config)
	x.completeConfig(s, config)
	if config.Rlimits, err = withUlimits(config.Rlimits, x.Plan.Ulimits, ownLimit); err != nil {
		return nil, err
	}
	x.confinement, err = newConfinement(s, x.Plan, config)
	return config, err
}

// startInitAndLog makes the container's process. For a container that starts at once it opens the log at
// the same time: nothing is written to the log before.
func (x *Container) startInitAndLog(s *sandbox.Sandbox, config *configs.Config, p *specs.Process) (err error) {
	opened := make(chan error, 1)
	if x.Prepared {
		opened <- nil
	} else {
		go func() { opened <- x.openLog(s) }()
	}
	defer func() { err = cmp.Or(<-opened, err) }()
	if x.Libcontainer, err = libcontainer.Create(s.Pod.LibcontainerDir(), x.ID(), config); err != nil {
		return fmt.Errorf("create container: %w", err)
	}
	return x.startInit(s, p)
}

// newProcess returns a process of the container, with its identity and confinement.
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

// Finish kills the remaining processes of an instance whose first process has exited, and copies its output
// to the log to the last line.
func (x *Container) Finish(s *sandbox.Sandbox) {
	x.life.end()
	x.killByMountNamespace()
	x.killCgroup(s)
	x.inUse.Wait()
	x.pidfd.close()
	x.closeStreams(s.Handoff)
}

// Signal sends sig to the container's first process. libcontainer sends it, but not while a command is being
// started in the container, and kills all processes of a shared PID namespace with SIGKILL. A process that has
// exited is no error. If no descriptor is free, libcontainer takes the process for ended; then Signal sends sig
// itself, because a pod must be killable in that state.
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

// StopSignal returns the manifest's or the image's stop signal, or else SIGTERM. It accepts names with or
// without SIG, and numbers.
func (x *Container) StopSignal() unix.Signal {
	sig, err := signal.ParseSignal(x.Plan.StopSignal)
	if err != nil || sig > MaxSignal {
		return unix.SIGTERM
	}
	return sig
}

// lifetime cancels the work for an instance when its process exits.
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

// Context returns a context that ends when the instance's process exits.
func (x *Container) Context() context.Context { return x.life.begin() }

// Acquire prevents an instance from being removed until Release.
func (x *Container) Acquire() { x.inUse.Add(1) }

// Release undoes one Acquire.
func (x *Container) Release() { x.inUse.Done() }

// FullID returns an instance's globally unique id: the pod's UID and the id within the pod.
func FullID(plan *pod.Plan, x *Container) string {
	return plan.UID + "-" + x.ID()
}

// Remove removes what was made for an instance without processes.
func (x *Container) Remove() {
	if err := x.Cleanup.Undo(); err != nil {
		fmt.Fprintf(os.Stderr, "remove container %s: %v\n", x.Plan.Name, err)
	}
}

// newSpecInput returns what is known of a container's specInput before its mounts are prepared.
func newSpecInput(s *sandbox.Sandbox, c *pod.Container, rootfs, dev string) specInput {
	input := specInput{
		rootfs: rootfs, dev: dev,
		netns: s.Net, ipcns: s.IPC, utsns: s.UTS,
		hostPID:       s.Plan.HostPID,
		sys:           s.SharedMountSpec().Paths().Sys,
		hosts:         filepath.Join(s.EtcDir(), "hosts"),
		hostname:      filepath.Join(s.EtcDir(), "hostname"),
		resolv:        filepath.Join(s.EtcDir(), "resolv.conf"),
		ttyGroup:      s.IDMapped("gid_map", 5),
		oomScoreFloor: sandbox.OOMScoreFloor(),
	}
	if s.Plan.HostIPC {
		input.ipcns = ""
	}
	if s.PauseProcess.PID != 0 {
		input.pidns = fmt.Sprintf("/proc/%d/ns/pid", s.PauseProcess.PID)
	}
	if s.Cgroup != nil {
		input.cgroup = s.Cgroup.ContainerPath(c.Name)
	} else if _, err := os.Stat(cgroupRoot); err == nil { // a kernel may have none
		input.cgroupsMounted = true
	}
	return input
}
