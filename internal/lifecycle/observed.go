package lifecycle

import (
	"slices"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Observed is the state of one pod: the result of its events and nothing else. The zero value is a
// pod that has not started. Its JSON is the state from which a supervisor recovers the pod.
type Observed struct {
	// StartTime is the time of the first event, from which
	// activeDeadlineSeconds counts.
	StartTime *Now `json:"startTime,omitempty"`

	Sandbox        SandboxState          `json:"sandbox,omitempty"`
	Attempt        int                   `json:"attempt,omitempty"`        // of the sandbox: the number of earlier ones
	Retry          time.Duration         `json:"retry,omitempty"`          // CLOCK_BOOTTIME before which no sandbox is made
	VolumeFailures int                   `json:"volumeFailures,omitempty"` // consecutive sandboxes that were not made because volumes failed
	Restarting     bool                  `json:"restarting,omitempty"`     // all containers are being stopped, to start again
	Deleting       bool                  `json:"deleting,omitempty"`       // a stop was requested, other than by a shutdown or an eviction
	Deletion       *pod.Deletion         `json:"deletion,omitempty"`       // the requested deletion with its grace; nil: none
	Ending         *Ending               `json:"ending,omitempty"`         // nil: the pod continues
	Containers     map[string]*Container `json:"containers,omitempty"`
	Conditions     []Transition          `json:"conditions,omitempty"`
	Events         pod.EventLog          `json:"events,omitzero"`  // the pod's events, for users
	Storage        Storage               `json:"storage,omitzero"` // disk use of the pod
	Pause          Pause                 `json:"pause,omitzero"`
	Gates          []pod.Condition       `json:"gates,omitempty"` // conditions that users have set, each type once
}

// SandboxState is the state of the sandbox.
type SandboxState string

const (
	SandboxNone     SandboxState = ""         // not requested
	SandboxCreating SandboxState = "creating" // CreateSandbox was issued
	SandboxUp       SandboxState = "up"       // containers can start in it
	SandboxBroken   SandboxState = "broken"   // no container can start in it; it is removed once nothing runs in it
	SandboxRemoving SandboxState = "removing" // RemoveSandbox was issued
	SandboxDown     SandboxState = "down"     // removed, lost, or never made: no other follows
)

// RunState is the state of the latest run of a container.
type RunState string

const (
	RunNone       RunState = ""         // never issued
	RunStarting   RunState = "starting" // StartContainer was issued
	RunRunning    RunState = "running"
	RunEnded      RunState = "ended"  // exited, or never ran
	RunNotCreated RunState = "unmade" // the container could not be made; it is tried again
)

// Container is the state of one container: its latest run, and of earlier runs what the status and
// the back-off need.
type Container struct {
	State   RunState `json:"state,omitempty"`
	Attempt int      `json:"attempt"` // of the latest run: the restart count
	ID      string   `json:"id,omitempty"`

	Image   string    `json:"image,omitempty"`   // of the latest run, as its plan has it
	ImageID string    `json:"imageID,omitempty"` // id of Image
	User    *pod.User `json:"user,omitempty"`    // of the latest run whose process ran

	Revision int `json:"revision,omitempty"` // revision of the plan's container that the latest run has

	FreshStart FreshStart    `json:"freshStart,omitempty"` // why the next run counts as a first one; empty once it has started
	Issued     Now           `json:"issued"`               // when the latest start was issued
	Started    time.Time     `json:"started,omitzero"`     // when the supervisor saw the latest run
	Ended      time.Duration `json:"ended,omitempty"`      // CLOCK_BOOTTIME of the latest end

	StartedBoot time.Duration `json:"startedBoot,omitempty"` // CLOCK_BOOTTIME at which the supervisor saw the latest run
	PostStart   HookRun       `json:"postStart,omitzero"`
	PreStop     HookRun       `json:"preStop,omitzero"`
	Startup     ProbeRun      `json:"startup,omitzero"`
	Liveness    ProbeRun      `json:"liveness,omitzero"`
	Readiness   ProbeRun      `json:"readiness,omitzero"`

	Kill       *Kill          `json:"kill,omitempty"`       // the deliberate end of the latest run
	StopIssued *time.Duration `json:"stopIssued,omitempty"` // CLOCK_BOOTTIME of StopContainer to the latest run
	KillIssued bool           `json:"killIssued,omitempty"` // KillContainer was issued to the latest run

	End     *pod.Terminated `json:"end,omitempty"`     // end of the latest run that ended
	PrevEnd *pod.Terminated `json:"prevEnd,omitempty"` // end of the run before End's

	Backoff    time.Duration `json:"backoff,omitempty"`  // set by the latest restart; see delay
	NotCreated *pod.Waiting  `json:"unmade,omitempty"`   // why, while State is RunNotCreated
	TryAgain   bool          `json:"tryAgain,omitempty"` // an object that it refers to has changed since its start was issued
}

// live reports whether a process of the container may exist.
func (c *Container) live() bool { return c.State == RunStarting || c.State == RunRunning }

// container returns the state of a container, or the zero value if it was never issued.
func (o *Observed) container(name string) *Container {
	if c, ok := o.Containers[name]; ok {
		return c
	}
	return &Container{}
}

// anyLive reports whether a process of any container of the list may exist.
func (o *Observed) anyLive(list []pod.Container) bool {
	for i := range list {
		if o.container(list[i].Name).live() {
			return true
		}
	}
	return false
}

// idle reports whether no process of any container exists.
func (o *Observed) idle(plan *pod.Plan) bool {
	return !slices.ContainsFunc(plan.All(), o.anyLive)
}

// podEnded reports whether the pod ends and nothing of it is left.
func (o *Observed) podEnded(plan *pod.Plan, ending *Ending) bool {
	gone := o.Sandbox == SandboxNone || o.Sandbox == SandboxDown
	return ending != nil && gone && o.idle(plan)
}
