package lifecycle

import (
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Now is one reading of the two clocks. Boot (CLOCK_BOOTTIME) drives every delay, because single-board
// computers have no RTC and wall clocks jump; Wall is for display only.
type Now struct {
	Boot time.Duration `json:"boot"`
	Wall time.Time     `json:"wall"`
}

// EventKind is the kind of an event.
type EventKind string

const (
	Issued        EventKind = "issued"        // the supervisor is about to carry Action out
	SandboxReady  EventKind = "sandboxReady"  // namespaces, volumes and the pod cgroup exist
	SandboxFailed EventKind = "sandboxFailed" // it could not be made, or no container can start in it any more: Message
	// VolumesFailed: volumes could not be made, or updated: Message, one line for each. Before that
	// they block the sandbox.
	VolumesFailed  EventKind = "volumesFailed"
	SandboxKilled  EventKind = "sandboxKilled"  // all its processes were killed, and it is gone: Message
	SandboxRemoved EventKind = "sandboxRemoved" // removed, as requested
	Started        EventKind = "started"        // the container's process runs: ContainerID
	StartFailed    EventKind = "startFailed"    // it never ran: Reason, Message, ExitCode
	Exited         EventKind = "exited"         // its process ended: ExitCode or Signal, OOMKilled, Message
	Replanned      EventKind = "replanned"      // the plan has changed
	StopRequested  EventKind = "stopRequested"  // the user stops the pod: GraceSeconds, or nil for the Plan's; or, with Reason Terminated, the machine shuts down

	// StorageMeasured carries the pod's disk use: Message of the exceeded limit, or "", Bytes in
	// all, and Took, the time of the count.
	StorageMeasured  EventKind = "storageMeasured"
	Probed           EventKind = "probed"           // Probe has run: Outcome, Message
	Hooked           EventKind = "hooked"           // Hook has run: Outcome, Message
	Recovered        EventKind = "recovered"        // a new supervisor has recovered the pod: no probe or hook is under way; Seed
	Restored         EventKind = "restored"         // for a pod without other state after a reboot: Container's latest run was Attempt: ExitCode, Reason, Message
	ObjectChanged    EventKind = "objectChanged"    // an object of the plan has appeared or changed: volumes and containers that could not be made are tried again
	Warned           EventKind = "warned"           // adds an event to the pod: Reason, Message
	PauseRequested   EventKind = "pauseRequested"   // the user pauses the containers
	UnpauseRequested EventKind = "unpauseRequested" // the user unpauses them
	Frozen           EventKind = "frozen"           // no process of a container runs any more
	Thawed           EventKind = "thawed"           // all of them run again
	ConditionSet     EventKind = "conditionSet"     // the user has set Condition to Status, with Reason and Message
)

// Reasons of a StartFailed whose container was never made: it is tried again. With any other reason
// the container was made and did not run.
const (
	ReasonCreateError       = "CreateContainerError"
	ReasonCreateConfigError = "CreateContainerConfigError"
)

// Event is a fact with the time of its observation. Events are the only input of Observed; a
// journal of them replays as a test.
type Event struct {
	At           Now       `json:"at"`
	Kind         EventKind `json:"kind"`
	Action       *Action   `json:"action,omitempty"`
	Container    string    `json:"container,omitempty"`
	Attempt      int       `json:"attempt,omitempty"`     // as in Action
	ContainerID  string    `json:"containerID,omitempty"` // the bare id; Status adds podrun://
	User         *pod.User `json:"user,omitempty"`        // of its process
	ExitCode     int       `json:"exitCode,omitempty"`
	Signal       int       `json:"signal,omitempty"` // then ExitCode is 128+Signal
	OOMKilled    bool      `json:"oomKilled,omitempty"`
	OOMLimit     OOMLimit  `json:"oomLimit,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Message      string    `json:"message,omitempty"`
	GraceSeconds *int64    `json:"graceSeconds,omitempty"`
	Seed         uint64    `json:"seed,omitempty"`  // of the delays of probes; 0: no delays
	Bytes        int64     `json:"bytes,omitempty"` // on disk

	Took      time.Duration `json:"took,omitempty"`
	Probe     ProbeKind     `json:"probe,omitempty"`
	Hook      HookKind      `json:"hook,omitempty"`
	Outcome   Outcome       `json:"outcome,omitempty"`
	Condition string        `json:"condition,omitempty"`
	Status    string        `json:"status,omitempty"` // of Condition: True, False or Unknown
}

// OOMLimit names the memory limit that a container exceeded when the OOM killer killed it.
type OOMLimit string

const (
	OOMContainer OOMLimit = "container" // its own limit
	OOMPod       OOMLimit = "pod"       // the limit of the pod as a whole
	OOMMachine   OOMLimit = ""          // neither: the machine's, or the limit of a unit around the pod
)

// ActionKind is the kind of an action. The comments name the events that answer it.
//
// KillContainer may name a container that is still starting: the start is then given up (→
// StartFailed). If that is not possible, the action may have no effect; Decide issues it again once
// the container has Started.
type ActionKind string

const (
	CreateSandbox  ActionKind = "createSandbox"  // → SandboxReady | VolumesFailed | SandboxFailed
	StartContainer ActionKind = "startContainer" // → Started, later Exited | StartFailed
	StopContainer  ActionKind = "stopContainer"  // send the container's stop signal → Exited, in time
	KillContainer  ActionKind = "killContainer"  // SIGKILL → Exited
	RemoveSandbox  ActionKind = "removeSandbox"  // → SandboxRemoved
	FreezeSandbox  ActionKind = "freezeSandbox"  // → Frozen, or UnpauseRequested if it fails
	ThawSandbox    ActionKind = "thawSandbox"    // → Thawed
	MeasureStorage ActionKind = "measureStorage" // compare disk use with Plan.Storage → StorageMeasured
	RunProbe       ActionKind = "runProbe"       // → Probed, within the probe's time-out
	RunHook        ActionKind = "runHook"        // → Hooked, if the container does not end first
)

// Action is an order to the supervisor. Attempt is the restart count of the container or, in an action of
// the sandbox, the number of earlier sandboxes.
type Action struct {
	Kind      ActionKind `json:"kind"`
	Container string     `json:"container,omitempty"`
	Attempt   int        `json:"attempt,omitempty"`
	Probe     ProbeKind  `json:"probe,omitempty"`
	Hook      HookKind   `json:"hook,omitempty"`
	Reason    string     `json:"reason,omitempty"` // for a preStop hook that receives it: Delete, Health or Dependency
}

// Decision is the result of Decide.
type Decision struct {
	Actions []Action
	Wake    time.Duration // decide again at this CLOCK_BOOTTIME at the latest; 0: only on an event
	Done    bool          // nothing is left to do, ever: the supervisor may exit
}
