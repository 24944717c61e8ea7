// Code generated from internal/protocol/protocol.go by go generate. DO NOT EDIT.
#pragma once

// Inherited descriptors, and descriptors of the pod init that others open below /proc/PID/fd.
#define PODRUN_FD_LOCK 3 // CLI → first process of a pod, puller, controller, replacer: the lock that the receiver holds from now on
#define PODRUN_FD_REPORT 4 // supervisor, pod program → CLI: the text of an error, then its hint; it ends without text when the pod is served or its processes have died
#define PODRUN_FD_FIRST 3 // CLI → first process of a pod: the stream socket to the CLI
#define PODRUN_FD_NET 5 // pod init → supervisor: the pod's network namespace
#define PODRUN_FD_IPC 6 // pod init → supervisor: the pod's IPC namespace
#define PODRUN_FD_UTS 7 // pod init → supervisor: the pod's UTS namespace
#define PODRUN_FD_ROUTER 8 // pod init → supervisor, CLI: the network namespace that the pods of one user share
#define PODRUN_FD_USER 9 // pod init → supervisor: the user namespace of the pod's containers, if it has one of its own
#define PODRUN_FD_CHANNEL 3 // pod init → supervisor: the SEQPACKET socket to the pod init
#define PODRUN_FD_PAUSE 3 // supervisor → pause process: the first of the namespaces that it joins; the others follow
#define PODRUN_FD_SHIM_TARGET 3 // supervisor → exec shim: a pidfd of the container's first process; if it is that process itself, the shim's own program
#define PODRUN_FD_SHIM_CHANNEL 4 // supervisor → exec shim: the stream socket for the configuration and the replies

// Environment variables. Environ of internal/reexec removes all of them from what a child inherits.
#define PODRUN_ENV_ENTER "_PODRUN_ENTER" // Go → C constructor, pod program: what the process enters before Go starts, or the part of the pod program
#define PODRUN_ENV_UID_MAP "_PODRUN_UIDMAP" // Go → C constructor, pod program: the map of user ids, "0 1000 1 1 100000 65536"
#define PODRUN_ENV_GID_MAP "_PODRUN_GIDMAP" // Go → C constructor, pod program: the map of group ids
#define PODRUN_ENV_ID_TOOLS "_PODRUN_IDTOOLS" // Go → C constructor, pod program: directory of newuidmap and newgidmap; empty: the map has one id
#define PODRUN_ENV_USER_NS "_PODRUN_USERNS" // CLI, supervisor → C constructor, pod program: descriptor of the user namespace to join; none: it is made
#define PODRUN_ENV_ROUTER "_PODRUN_ROUTER" // CLI → monitor: descriptor of the router's network namespace; none: it is made
#define PODRUN_ENV_HOSTNAME "_PODRUN_HOSTNAME" // CLI → monitor: the pod's hostname
#define PODRUN_ENV_HOST_PID "_PODRUN_HOSTPID" // CLI → monitor: 1: the pod lives in the host's PID namespace
#define PODRUN_ENV_OWN_USER_NS "_PODRUN_OWN_USERNS" // CLI → monitor: the containers have a user namespace of their own: 1 with the same ids, else the map
#define PODRUN_ENV_SUPERVISOR "_PODRUN_SUPERVISOR" // CLI → monitor: path of the supervisor program
#define PODRUN_ENV_AFTER "_PODRUN_AFTER" // CLI, monitor, pod init → supervisor: why the supervisor starts
#define PODRUN_ENV_KEPT_FDS "_PODRUN_KEPT_FDS" // pod init → supervisor: the kept descriptors, "NAME=FD …"
#define PODRUN_ENV_NOTIFY "_PODRUN_NOTIFY" // CLI → first supervisor: JSON with two descriptors and the notify request of protocol.md, section 8
#define PODRUN_ENV_PORTS "_PODRUN_PORTS" // CLI → first supervisor: opened host ports, "NAME=FD …"
#define PODRUN_ENV_RECORD "_PODRUN_RECORD" // CLI → first supervisor: descriptor with one byte when the pod is recorded
#define PODRUN_ENV_UNIT_LOOP "_PODRUN_UNITLOOP" // up, controller → unit loop: the CLI's program, output or -1, number of pods, their sockets, descriptors that end the wait
#define PODRUN_ENV_WOKEN_BY "_PODRUN_WOKEN_BY" // unit loop → up, controller: why the wait has ended

// Values of _PODRUN_ENTER.
#define PODRUN_ENTER_USER_NS "userns" // any → C constructor: a user and a mount namespace
#define PODRUN_ENTER_USER_NS_NET "userns,net" // CLI → C constructor: an empty network namespace, too
#define PODRUN_ENTER_FIRST "first" // CLI → pod program: the first process of a pod, which need not be known yet
#define PODRUN_ENTER_POD "pod" // CLI → pod program: the process forks the monitor and exits
#define PODRUN_ENTER_PAUSE "pause" // supervisor → pod program: the pause process
#define PODRUN_ENTER_UNIT_LOOP "unitloop" // up, controller → pod program: the unit loop

// Values of _PODRUN_AFTER.
#define PODRUN_AFTER_SANDBOX "sandbox" // monitor → supervisor: the pod init was killed, and all kept state is lost
#define PODRUN_AFTER_DEATH "death" // pod init → supervisor: the one before has died
#define PODRUN_AFTER_HIBERNATION "hibernation" // pod init → supervisor: the one before has hibernated

// Values of _PODRUN_WOKEN_BY.
#define PODRUN_WOKEN_BY_TERM "term" // unit loop → up, controller: SIGTERM
#define PODRUN_WOKEN_BY_INT "int" // unit loop → up, controller: SIGINT
#define PODRUN_WOKEN_BY_HUP "hup" // unit loop → up, controller: SIGHUP
#define PODRUN_WOKEN_BY_GONE "gone" // unit loop → up, controller: the supervisor of a pod has ended, or a descriptor has input

// Hidden first arguments: re-exec entry points.
#define PODRUN_ENTRY_REMOVE_POD "_remove-pod" // monitor → supervisor program: remove all of a dead pod

// Words of the channel between the pod init and a supervisor. A message is one word with its operands.
#define PODRUN_MSG_KEEP "keep" // supervisor → pod init: NAME, with a descriptor: hold a duplicate of it; it replaces an existing one
#define PODRUN_MSG_WATCH "watch" // supervisor → pod init: NAME, with a descriptor: the same; its input also ends a hibernation
#define PODRUN_MSG_DROP "drop" // supervisor → pod init: NAME: close the descriptor
#define PODRUN_MSG_FORGET "forget" // supervisor → pod init: PID START: the exit of this process is recorded
#define PODRUN_MSG_SERVING "serving" // supervisor → pod init: from now on the pod outlives its supervisor; the report pipe is closed
#define PODRUN_MSG_STOP_RECORDED "stop-recorded" // supervisor → pod init: the requested stop is recorded
#define PODRUN_MSG_HIBERNATE "hibernate" // supervisor → pod init: AT_NS PING_MS PROBES: this process exits; start another at an input, an exit, a stop or at this CLOCK_BOOTTIME (0: none); send WATCHDOG=1 to "notify" at this interval (0: never); until then run the PROBES of "probes"
#define PODRUN_MSG_FINISHED "finished" // supervisor → pod init: CODE: the pod has ended
#define PODRUN_MSG_READY "ready" // pod init → supervisor: the namespaces are held; to the first supervisor of a pod init only
#define PODRUN_MSG_EXIT "exit" // pod init → supervisor: PID START STATUS AT_NS COMM: a process whose parent had died has exited; repeated to each supervisor until forget
#define PODRUN_MSG_STOP "stop" // pod init → supervisor: stop the pod gracefully; repeated until stop-recorded

// Names of descriptors that the pod init keeps. The containers' streams are ID.STREAM.
#define PODRUN_KEPT_NOTIFY "notify" // supervisor → pod init, next supervisor: the notify socket of protocol.md, section 8
#define PODRUN_KEPT_PROBES "probes" // supervisor → prober, next supervisor: the table of steady probes, in shared memory
#define PODRUN_KEPT_COUNTERS "probe.counters" // supervisor → prober: the file that counts the results of probes
#define PODRUN_KEPT_SHIM "probe.shim" // supervisor → prober: the exec shim's program

// Messages of a supervisor or pod init to the main process of the pod's systemd unit, in the form of sd_notify.
#define PODRUN_NOTIFY_WATCHDOG "WATCHDOG=1" // supervisor, pod init → up, unit loop → systemd: the pod is alive
#define PODRUN_NOTIFY_STATUS "STATUS=" // supervisor → up, unit loop → systemd: followed by the pod's state in a few words

// Limits of messages.
#define PODRUN_MAX_KEPT_NAME 95 // supervisor → pod init: bytes of a kept name
#define PODRUN_MAX_KEPT 1000 // supervisor → pod init: kept descriptors
#define PODRUN_MAX_EXITS 1000 // pod init → supervisor: exits that are not recorded
#define PODRUN_MAX_MESSAGE 160 // pod init ↔ supervisor: bytes of a message
#define PODRUN_MAX_PROBES 64 // supervisor → pod init: steady probes of a hibernating pod
#define PODRUN_MAX_FIRST_TEXT 1048576 // CLI → first process of a pod: bytes of the text
#define PODRUN_MAX_FIRST_FILES 64 // CLI → first process of a pod: descriptors in one group
#define PODRUN_MAX_FIRST_ARGS 16 // CLI → first process of a pod: arguments

// Exit codes.
#define PODRUN_EXIT_SANDBOX_LOST 124 // supervisor → pod init, monitor: no other supervisor could recover the sandbox; the pod gets another
#define PODRUN_EXIT_UNRECOVERABLE 125 // supervisor → pod init, monitor: no other supervisor could recover the pod, which ends

// Names of processes (/proc/PID/comm).
#define PODRUN_COMM_MONITOR "podrun-monitor" // monitor → CLI: the monitor
#define PODRUN_COMM_POD_INIT "podrun-podinit" // pod init → supervisor: the pod init
#define PODRUN_COMM_PROBER "podrun-prober" // prober → users: a prober, which runs one steady probe while the supervisor hibernates
#define PODRUN_COMM_PAUSE "podrun-pause" // pause process → users: the pause process
#define PODRUN_COMM_UNIT_LOOP "podrun-unitloop" // unit loop → users: the unit loop

// Files that C code reads and removes. internal/store has all others.
#define PODRUN_FILE_LOCK "lock" // pod init → all: the pod's lock, in the data directory, with a line about the pod init
#define PODRUN_FILE_RUNTIME "runtime" // CLI → monitor: the link to the runtime directory, in the data directory
#define PODRUN_FILE_REMOVING "removing" // supervisor, puller → monitor, commands: the pod is being removed

// Words of the pod's lock.
#define PODRUN_LOCK_SERVING "serving" // pod init → commands: a supervisor has opened the control socket

// Replies of the exec shim: the first comes with a pid, the others, failed steps, with an errno.
#define PODRUN_SHIM_STARTED 1 // exec shim → supervisor: the process that will be the program is made
