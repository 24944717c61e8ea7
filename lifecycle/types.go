// Package lifecycle decides what happens to a pod next, as the kubelet would.
//
// It is pure: it knows no process, file or clock. The runner folds what it saw
// into an Observed, asks Decide, carries the actions out and folds their results.
package lifecycle

import (
	"time"

	"github.com/podrun/podrun/pod"
)

// Now is one reading of the two clocks. Boot (CLOCK_BOOTTIME) drives every
// delay, because boards have no clock of their own and wall clocks jump; Wall is
// only shown to people.
type Now struct {
	Boot time.Duration `json:"boot"`
	Wall time.Time     `json:"wall"`
}

// EventKind says what happened.
type EventKind string

const (
	Issued       EventKind = "issued"       // the runner is about to carry Action out
	SandboxReady EventKind = "sandboxReady" // namespaces, volumes and the pod cgroup exist
	SandboxLost  EventKind = "sandboxLost"  // it could not be made, or no container can be started in it any more: Message
	// VolumesFailed says that volumes could not be made, or brought up to date: Message,
	// a line for each. Without them there is no sandbox yet.
	VolumesFailed EventKind = "volumesFailed"
	SandboxDied   EventKind = "sandboxDied" // it is gone with everything that ran in it: Message
	SandboxGone   EventKind = "sandboxGone" // removed, as asked
	Started       EventKind = "started"     // the container's process runs: ContainerID
	StartFailed   EventKind = "startFailed" // it never ran: Reason, Message, ExitCode
	Exited        EventKind = "exited"      // its process ended: ExitCode or Signal, OOMKilled, Message
	Replanned     EventKind = "replanned"   // the plan is another now
	StopAsked     EventKind = "stopAsked"   // the user wants the pod gone: GraceSeconds or nil for the Plan's; or, with Reason Terminated, the machine is being stopped

	// StorageMeasured says what the pod has on disk: Message of the limit that is
	// exceeded, or "", Bytes in all, and Took, how long it was to count them.
	StorageMeasured EventKind = "storageMeasured"
	Probed          EventKind = "probed"        // Probe has been asked: Outcome, Message
	Hooked          EventKind = "hooked"        // Hook has been run: Outcome, Message
	Adopted         EventKind = "adopted"       // a new supervisor has taken the pod up: it knows of no probe or hook under way; Seed
	Remembered      EventKind = "remembered"    // of a pod of which nothing else is known, Container's latest run was Attempt: ExitCode, Reason, Message
	ObjectChanged   EventKind = "objectChanged" // what the plan refers to is there, or another: volumes and containers that could not be made are tried again
	Warned          EventKind = "warned"        // the pod's events are to tell of something: Reason, Message
	PauseWanted     EventKind = "pauseWanted"   // the user wants the containers to do nothing for a while
	ResumeWanted    EventKind = "resumeWanted"  // and to go on
	Frozen          EventKind = "frozen"        // no process of a container runs any more
	Thawed          EventKind = "thawed"        // they all run again
	ConditionSet    EventKind = "conditionSet"  // the user has set Condition to Status, with Reason and Message
)

// Reasons of a StartFailed whose container was never made: it is tried again. With
// any other reason it was made and did not run.
const (
	ReasonCreateError       = "CreateContainerError"
	ReasonCreateConfigError = "CreateContainerConfigError"
)

// Event is a fact, with the time it was seen. Events are the only input of
// Observed; a journal of them replays as a test.
type Event struct {
	At           Now       `json:"at"`
	Kind         EventKind `json:"kind"`
	Action       *Action   `json:"action,omitempty"`
	Container    string    `json:"container,omitempty"`
	Attempt      int       `json:"attempt,omitempty"`     // the container's restart count
	ContainerID  string    `json:"containerID,omitempty"` // the bare id; Status adds podrun://
	User         *pod.User `json:"user,omitempty"`        // of its process
	ExitCode     int       `json:"exitCode,omitempty"`
	Signal       int       `json:"signal,omitempty"` // then ExitCode is 128+Signal
	OOMKilled    bool      `json:"oomKilled,omitempty"`
	OOMLimit     OOMLimit  `json:"oomLimit,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Message      string    `json:"message,omitempty"`
	GraceSeconds *int64    `json:"graceSeconds,omitempty"`
	Seed         uint64    `json:"seed,omitempty"`  // of the delays of probes; 0: there are none
	Bytes        int64     `json:"bytes,omitempty"` // on disk

	Took      time.Duration `json:"took,omitempty"`
	Probe     ProbeKind     `json:"probe,omitempty"`
	Hook      HookKind      `json:"hook,omitempty"`
	Outcome   Outcome       `json:"outcome,omitempty"`
	Condition string        `json:"condition,omitempty"`
	Status    string        `json:"status,omitempty"` // of Condition: True, False or Unknown
}

// OOMLimit says whose memory was used up when a container was killed for want of it.
type OOMLimit string

const (
	OOMContainer OOMLimit = "container" // its own limit
	OOMPod       OOMLimit = "pod"       // the limit of the pod as a whole
	OOMMachine   OOMLimit = ""          // neither: the machine's, or that of a unit around the pod
)

// ActionKind says what is to be done, and which event answers it.
//
// KillContainer may name a container that is still starting: the start is to be
// given up (→ StartFailed). Where that cannot be done it may be lost; the stop is
// decided anew once the container has Started.
type ActionKind string

const (
	CreateSandbox  ActionKind = "createSandbox"  // → SandboxReady | VolumesFailed | SandboxLost
	StartContainer ActionKind = "startContainer" // → Started, later Exited | StartFailed
	StopContainer  ActionKind = "stopContainer"  // send the container's stop signal → Exited, in time
	KillContainer  ActionKind = "killContainer"  // SIGKILL → Exited
	RemoveSandbox  ActionKind = "removeSandbox"  // → SandboxGone
	FreezeSandbox  ActionKind = "freezeSandbox"  // → Frozen, or ResumeWanted if that cannot be
	ThawSandbox    ActionKind = "thawSandbox"    // → Thawed
	MeasureStorage ActionKind = "measureStorage" // hold what is on disk against Plan.Storage → StorageMeasured
	RunProbe       ActionKind = "runProbe"       // → Probed, within the probe's time-out
	RunHook        ActionKind = "runHook"        // → Hooked, if the container does not end first
)

// Action is an order to the runner. Attempt is the container's restart count.
type Action struct {
	Kind      ActionKind `json:"kind"`
	Container string     `json:"container,omitempty"`
	Attempt   int        `json:"attempt,omitempty"`
	Probe     ProbeKind  `json:"probe,omitempty"`
	Hook      HookKind   `json:"hook,omitempty"`
	Reason    string     `json:"reason,omitempty"` // of a preStop hook that is to be told: Delete, Health or Dependency
}

// Decision is the answer of Decide.
type Decision struct {
	Actions []Action
	Wake    time.Duration // decide again at this Boot time at the latest; 0: only on an event
	Done    bool          // nothing is left to do, ever: the runner may end
}
