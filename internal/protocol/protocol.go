// Package protocol is the table of the names and numbers on which two processes of podrun agree
// outside of typed messages: inherited descriptors, environment variables, hidden arguments, words
// of the pod init's channel, the exec shim's numbers. The comment of each line is its documentation:
// SENDER → RECEIVER: meaning.
//
// go generate writes the C headers and a part of docs/explanation/protocol.md from this file.
package protocol

//go:generate go test . -run TestGenerated -update

// Inherited descriptors, and descriptors of the pod init that others open below /proc/PID/fd.
const (
	FDLock     = 3 // CLI → first process of a pod, puller, controller, replacer: the lock that the receiver holds from now on
	FDReport   = 4 // supervisor, pod program → CLI: the text of an error, then its hint; it ends without text when the pod is served or its processes have died
	FDFirst    = 3 // CLI → first process of a pod: the stream socket to the CLI
	FDNet      = 5 // pod init → supervisor: the pod's network namespace
	FDIPC      = 6 // pod init → supervisor: the pod's IPC namespace
	FDUTS      = 7 // pod init → supervisor: the pod's UTS namespace
	FDRouter   = 8 // pod init → supervisor, CLI: the network namespace that the pods of one user share
	FDUser     = 9 // pod init → supervisor: the user namespace of the pod's containers, if it has one of its own
	FDChannel  = 3 // pod init → supervisor: the SEQPACKET socket to the pod init
	FDPause    = 3 // supervisor → pause process: the first of the namespaces that it joins; the others follow
	FDNetstack = 3 // supervisor → netstack: the SEQPACKET socket to the supervisor

	FDWireguardSocket = 4 // node agent → WireGuard process: the listening socket for configurations; FDLock is its lock
	FDWireguardRouter = 5 // node agent → WireGuard process: the network namespace that the pods of one user share

	FDUnpackLock    = 3 // image program → unpacker: the lock of the image store
	FDUnpackRecipe  = 4 // image program → unpacker: the file of the recipe that it writes
	FDRebuildRecipe = 3 // CLI, image program → rebuilder: the recipe
	FDRebuildResult = 4 // CLI, image program → rebuilder: the pipe of the result, if the stream goes to standard output

	FDImageSocket = 3 // CLI → image program: the stream socket to the CLI
	FDImageOutput = 4 // CLI → image program: the archive that a save request writes

	FDShimTarget  = 3 // supervisor → exec shim: a pidfd of the container's first process; if it is that process itself, the shim's own program
	FDShimChannel = 4 // supervisor → exec shim: the stream socket for the configuration and the replies
)

// Environment variables. Environ of internal/reexec removes all of them from what a child inherits.
const (
	EnvPrefix = "_PODRUN_" // any → any: the beginning of all names

	EnvEnter      = "_PODRUN_ENTER"      // Go → C constructor, pod program: what the process enters before Go starts, or the part of the pod program
	EnvUIDMap     = "_PODRUN_UIDMAP"     // Go → C constructor, pod program: the map of user ids, "0 1000 1 1 100000 65536"
	EnvGIDMap     = "_PODRUN_GIDMAP"     // Go → C constructor, pod program: the map of group ids
	EnvIDTools    = "_PODRUN_IDTOOLS"    // Go → C constructor, pod program: directory of newuidmap and newgidmap; empty: the map has one id
	EnvUserNS     = "_PODRUN_USERNS"     // CLI, supervisor → C constructor, pod program: descriptor of the user namespace to join; none: it is made
	EnvRouter     = "_PODRUN_ROUTER"     // CLI → monitor: descriptor of the router's network namespace; none: it is made
	EnvHostname   = "_PODRUN_HOSTNAME"   // CLI → monitor: the pod's hostname
	EnvHostPID    = "_PODRUN_HOSTPID"    // CLI → monitor: 1: the pod lives in the host's PID namespace
	EnvOwnUserNS  = "_PODRUN_OWN_USERNS" // CLI → monitor: the containers have a user namespace of their own: 1 with the same ids, else the map
	EnvSupervisor = "_PODRUN_SUPERVISOR" // CLI → monitor: path of the supervisor program
	EnvAfter      = "_PODRUN_AFTER"      // CLI, monitor, pod init → supervisor: why the supervisor starts
	EnvKeptFDs    = "_PODRUN_KEPT_FDS"   // pod init → supervisor: the kept descriptors, "NAME=FD …"
	EnvNotify     = "_PODRUN_NOTIFY"     // CLI → first supervisor: JSON with two descriptors and the notify request of protocol.md, section 8
	EnvPorts      = "_PODRUN_PORTS"      // CLI → first supervisor: opened host ports, "NAME=FD …"
	EnvRecord     = "_PODRUN_RECORD"     // CLI → first supervisor: descriptor with one byte when the pod is recorded
	EnvNetstack   = "_PODRUN_NETSTACK"   // CLI → supervisor: path of the netstack program
	EnvPuller     = "_PODRUN_PULLER"     // CLI → starter of the puller: set: start the puller in a process of its own, and exit
	EnvUnitLoop   = "_PODRUN_UNITLOOP"   // up, controller → unit loop: the CLI's program, output or -1, number of pods, their sockets, descriptors that end the wait
	EnvUnitState  = "_PODRUN_UNIT_STATE" // up, controller → the next up or controller, through the unit loop: its state, in JSON
	EnvWokenBy    = "_PODRUN_WOKEN_BY"   // unit loop → up, controller: why the wait has ended
	EnvCLI        = "_PODRUN_CLI"        // CLI → fast path: descriptor of the CLI's program (O_PATH); where it is set the fast path does not run again
)

// Values of _PODRUN_ENTER.
const (
	EnterUserNS    = "userns"     // any → C constructor: a user and a mount namespace
	EnterUserNSNet = "userns,net" // CLI → C constructor: an empty network namespace, too
	EnterFirst     = "first"      // CLI → pod program: the first process of a pod, which need not be known yet
	EnterPod       = "pod"        // CLI → pod program: the process forks the monitor and exits
	EnterPause     = "pause"      // supervisor → pod program: the pause process
	EnterUnitLoop  = "unitloop"   // up, controller → pod program: the unit loop
)

// Values of _LIBCONTAINER_LOGLEVEL, which are levels for libcontainer, too.
const (
	PlainLogLevel = "+2" // supervisor → C constructor: libcontainer logs errors; the container is plain, and its init is the one in C
)

// Values of _PODRUN_AFTER.
const (
	AfterNothing     = "nothing"     // CLI → supervisor: it is the pod's first
	AfterSandbox     = "sandbox"     // monitor → supervisor: the pod init was killed, and all kept state is lost
	AfterDeath       = "death"       // pod init → supervisor: the one before has died
	AfterHibernation = "hibernation" // pod init → supervisor: the one before has hibernated
)

// Values of _PODRUN_WOKEN_BY.
const (
	WokenByTerm = "term" // unit loop → up, controller: SIGTERM
	WokenByInt  = "int"  // unit loop → up, controller: SIGINT
	WokenByHup  = "hup"  // unit loop → up, controller: SIGHUP
	WokenByGone = "gone" // unit loop → up, controller: the supervisor of a pod has ended, or a descriptor has input
)

// Hidden first arguments: re-exec entry points.
const (
	EntrySupervisor   = "_supervisor"     // CLI → supervisor program: run a pod to its end
	EntryRemoveFiles  = "_remove-files"   // CLI, monitor → supervisor program: remove the files of a dead pod
	EntryRemovePod    = "_remove-pod"     // monitor → supervisor program: remove all of a dead pod
	EntryRemoveVolume = "_remove-volume"  // CLI → supervisor program: remove the directory of a volume
	EntryFilter       = "_filter"         // supervisor → supervisor program: compile a seccomp profile
	EntryNetstack     = "_netstack"       // supervisor → netstack program: carry the traffic of a pod
	EntryWireguard    = "_wireguard"      // node agent → netstack program: carry the traffic between the router and other nodes
	EntryController   = "_controller"     // CLI → CLI: the controller of one workload
	EntryPuller       = "_puller"         // CLI → CLI: pull the images of one pod and start it
	EntryReplacer     = "_replace"        // CLI → CLI: replace one pod
	EntryUnpack       = "_unpack"         // image program → image program: unpack a layer, confined
	EntryRebuild      = "_rebuild"        // CLI, image program → itself: make a layer's tar stream again
	EntryImage        = "_image"          // CLI → image program: registries, archives and logins
	EntryCompose      = "_compose"        // CLI → image program: convert compose files
	EntryKustomize    = "_kustomize"      // CLI → image program: build a kustomization
	EntryPatch        = "_patch"          // CLI → image program: patch an object
	EntryRemoveLayers = "_rmlayers"       // CLI, image program → itself: remove trees with subordinate ids
	EntryProbe        = "_nsprobe"        // CLI → CLI: try the namespaces and mounts of a pod
	EntryProbeInside  = "_nsprobe-inside" // CLI → CLI: the same, in the namespaces of a pod
)

// Words of the channel between the pod init and a supervisor. A message is one word with its operands.
const (
	MsgKeep         = "keep"          // supervisor → pod init: NAME, with a descriptor: hold a duplicate of it; it replaces an existing one
	MsgWatch        = "watch"         // supervisor → pod init: NAME, with a descriptor: the same; its input also ends a hibernation
	MsgDrop         = "drop"          // supervisor → pod init: NAME: close the descriptor
	MsgForget       = "forget"        // supervisor → pod init: PID START: the exit of this process is recorded
	MsgServing      = "serving"       // supervisor → pod init: from now on the pod outlives its supervisor; the report pipe is closed
	MsgStopRecorded = "stop-recorded" // supervisor → pod init: the requested stop is recorded
	MsgHibernate    = "hibernate"     // supervisor → pod init: AT_NS PING_MS PROBES: this process exits; start another at an input, an exit, a stop or at this CLOCK_BOOTTIME (0: none); send WATCHDOG=1 to "notify" at this interval (0: never); until then run the PROBES of "probes"
	MsgFinished     = "finished"      // supervisor → pod init: CODE: the pod has ended
	MsgReady        = "ready"         // pod init → supervisor: the namespaces are held; to the first supervisor of a pod init only
	MsgExit         = "exit"          // pod init → supervisor: PID START STATUS AT_NS COMM: a process whose parent had died has exited; repeated to each supervisor until forget
	MsgStop         = "stop"          // pod init → supervisor: stop the pod gracefully; repeated until stop-recorded
)

// Names of descriptors that the pod init keeps. The containers' streams are ID.STREAM.
const (
	KeptControl  = "control"        // supervisor → next supervisor: the listening control socket
	KeptNotify   = "notify"         // supervisor → pod init, next supervisor: the notify socket of protocol.md, section 8
	KeptOutput   = "notify.output"  // supervisor → next supervisor: the pipe to the unit's output
	KeptPort     = "port:"          // supervisor → next supervisor: the beginning of a host port's name
	KeptNodePort = "node:"          // supervisor → next supervisor: the beginning of a node port's name
	KeptTraffic  = "traffic-"       // supervisor → next supervisor: the beginning of the name of a descriptor for traffic
	KeptProbes   = "probes"         // supervisor → prober, next supervisor: the table of steady probes, in shared memory
	KeptCounters = "probe.counters" // supervisor → prober: the file that counts the results of probes
	KeptShim     = "probe.shim"     // supervisor → prober: the exec shim's program
	KeptTarget   = "probe.target."  // supervisor → prober: the beginning of the name of a pidfd of a container's first process
)

// Messages of a supervisor or pod init to the main process of the pod's systemd unit, in the form of sd_notify.
const (
	NotifyWatchdog = "WATCHDOG=1" // supervisor, pod init → up, unit loop → systemd: the pod is alive
	NotifyStatus   = "STATUS="    // supervisor → up, unit loop → systemd: followed by the pod's state in a few words
)

// Limits of messages.
const (
	MaxKeptName   = 95      // supervisor → pod init: bytes of a kept name
	MaxKept       = 1000    // supervisor → pod init: kept descriptors
	MaxExits      = 1000    // pod init → supervisor: exits that are not recorded
	MaxMessage    = 160     // pod init ↔ supervisor: bytes of a message
	MaxProbes     = 64      // supervisor → pod init: steady probes of a hibernating pod
	MaxFirstText  = 1048576 // CLI → first process of a pod: bytes of the text
	MaxFirstFiles = 64      // CLI → first process of a pod: descriptors in one group
	MaxFirstArgs  = 16      // CLI → first process of a pod: arguments
)

// Exit codes.
const (
	ExitSandboxLost   = 124 // supervisor → pod init, monitor: no other supervisor could recover the sandbox; the pod gets another
	ExitUnrecoverable = 125 // supervisor → pod init, monitor: no other supervisor could recover the pod, which ends
)

// Names of processes (/proc/PID/comm).
const (
	CommMonitor    = "podrun-monitor"  // monitor → CLI: the monitor
	CommPodInit    = "podrun-podinit"  // pod init → supervisor: the pod init
	CommSupervisor = "podrun-superv"   // supervisor → users: the supervisor
	CommProber     = "podrun-prober"   // prober → users: a prober, which runs one steady probe while the supervisor hibernates
	CommPause      = "podrun-pause"    // pause process → users: the pause process
	CommUnitLoop   = "podrun-unitloop" // unit loop → users: the unit loop
	CommShim       = "podrun-execshim" // exec shim → supervisor: the exec shim, until it executes its program
)

// Files that C code reads and removes. internal/store has all others.
const (
	FilePods     = "pods"     // CLI → monitor: the directory of all pods, below the data and the runtime root
	FileLock     = "lock"     // pod init → all: the pod's lock, in the data directory, with a line about the pod init
	FileRuntime  = "runtime"  // CLI → monitor: the link to the runtime directory, in the data directory
	FileRemoving = "removing" // supervisor, puller → monitor, commands: the pod is being removed
)

// Words of the pod's lock.
const (
	LockServing = "serving" // pod init → commands: a supervisor has opened the control socket
)

// The configuration for the exec shim: a fixed head (struct config), then what it counts.
const (
	ShimMagic       = 0x70727431 // supervisor → exec shim: the first number of the configuration
	ShimExec        = 1          // supervisor → exec shim: flag: enter the container by the pidfd; else libcontainer has done all but the last steps
	ShimNoNewPrivs  = 2          // supervisor → exec shim: flag: set no_new_privs
	ShimFilterEarly = 4          // supervisor → exec shim: flag: load the filter before the process is in the container
	ShimSetGroups   = 8          // supervisor → exec shim: flag: the user namespace permits to set groups
	ShimLabel       = 16         // supervisor → exec shim: flag: the profile is an SELinux label
	MaxShimGroups   = 4096       // supervisor → exec shim: groups of a configuration
	MaxShimFilter   = 4096       // supervisor → exec shim: instructions of a filter (BPF_MAXINSNS)
	MaxShimLimits   = 16         // supervisor → exec shim: limits of a configuration
	MaxShimPath     = 4096       // supervisor → exec shim: bytes of a path
)

// Replies of the exec shim: the first comes with a pid, the others, failed steps, with an errno.
const (
	ShimStarted      = 1  // exec shim → supervisor: the process that will be the program is made
	StepConfig       = 2  // exec shim → supervisor: read the configuration
	StepOOM          = 3  // exec shim → supervisor: set oom_score_adj
	StepLimits       = 4  // exec shim → supervisor: set the limits of resources
	StepEnter        = 5  // exec shim → supervisor: enter the container
	StepPrivileges   = 6  // exec shim → supervisor: give up privileges
	StepDirectory    = 7  // exec shim → supervisor: change to the working directory
	StepOutside      = 8  // exec shim → supervisor: keep the working directory in the container
	StepBounding     = 9  // exec shim → supervisor: bound the capabilities
	StepStdio        = 10 // exec shim → supervisor: hand over input and output
	StepGroups       = 11 // exec shim → supervisor: set the groups
	StepGroup        = 12 // exec shim → supervisor: set the group
	StepUser         = 13 // exec shim → supervisor: set the user
	StepCapabilities = 14 // exec shim → supervisor: set the capabilities
	StepFilter       = 15 // exec shim → supervisor: load the filter for system calls
	StepProfile      = 16 // exec shim → supervisor: change to the AppArmor profile or the SELinux label
	StepFork         = 17 // exec shim → supervisor: fork
	StepSession      = 18 // exec shim → supervisor: begin a session
	StepExecute      = 19 // exec shim → supervisor: execute the program
	StepInterpreter  = 20 // exec shim → supervisor: execute the program's interpreter, which does not exist
)
