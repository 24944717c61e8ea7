package lifecycle

import (
	"slices"
	"time"

	"github.com/podrun/podrun/pod"
)

// Observed is what is known of one pod: the fold of its events, and nothing
// else. The zero value is a pod that nobody has begun with. As JSON it is the
// state from which a pod is taken up again.
type Observed struct {
	// Accepted is the time of the first event: the pod's start time, from which
	// activeDeadlineSeconds counts.
	Accepted *Now `json:"accepted,omitempty"`

	Sandbox    SandboxState          `json:"sandbox,omitempty"`
	Attempt    int                   `json:"attempt,omitempty"`    // of the sandbox: how many there were before
	Retry      time.Duration         `json:"retry,omitempty"`      // Boot time before which no sandbox is made
	Held       int                   `json:"held,omitempty"`       // how often in a row there was none for want of volumes
	Restarting bool                  `json:"restarting,omitempty"` // all containers are being ended, to be begun anew
	Deleting   bool                  `json:"deleting,omitempty"`   // a stop was asked for
	Deletion   *pod.Deletion         `json:"deletion,omitempty"`   // likewise, and its grace
	Ending     *Ending               `json:"ending,omitempty"`     // nil: the pod is to go on
	Containers map[string]*Container `json:"containers,omitempty"`
	Conditions []Transition          `json:"conditions,omitempty"`
	Events     pod.EventLog          `json:"events,omitzero"`  // what the pod's user is told
	Storage    Storage               `json:"storage,omitzero"` // what is known of the disk the pod uses
	Pause      Pause                 `json:"pause,omitzero"`
	Gates      []pod.Condition       `json:"gates,omitempty"` // conditions that users have set, each type once
}

// SandboxState is where the sandbox stands.
type SandboxState string

const (
	SandboxNone     SandboxState = ""         // not asked for
	SandboxCreating SandboxState = "creating" // CreateSandbox was issued
	SandboxUp       SandboxState = "up"       // containers may be started in it
	SandboxBroken   SandboxState = "broken"   // none can any more: it is removed when nothing runs in it
	SandboxRemoving SandboxState = "removing" // RemoveSandbox was issued
	SandboxDown     SandboxState = "down"     // removed, lost, or never made: there will be no other
)

// RunState is where the latest run of a container stands.
type RunState string

const (
	RunNone     RunState = ""         // never issued
	RunStarting RunState = "starting" // StartContainer was issued
	RunRunning  RunState = "running"
	RunEnded    RunState = "ended"  // exited, or never came to run
	RunUnmade   RunState = "unmade" // the container could not be made; it is tried again
)

// Container is what is known of one container: its latest run, and of the runs
// before it what the status and the back-off need.
type Container struct {
	State   RunState `json:"state,omitempty"`
	Attempt int      `json:"attempt"` // of the latest run: the restart count
	ID      string   `json:"id,omitempty"`

	Image   string    `json:"image,omitempty"`   // of the latest run, as its plan has it
	ImageID string    `json:"imageID,omitempty"` // likewise
	User    *pod.User `json:"user,omitempty"`    // of the latest run that came to run

	Revision int `json:"revision,omitempty"` // of the plan's container, which the latest run is

	Renew   Renewal       `json:"renew,omitempty"`  // the latest run is of before everything was begun anew
	Issued  Now           `json:"issued"`           // when the latest start was issued
	Started time.Time     `json:"started,omitzero"` // when the latest run was seen to run
	Ended   time.Duration `json:"ended,omitempty"`  // Boot time of the latest end

	Up        time.Duration `json:"up,omitempty"` // Boot time at which the latest run was seen to run
	PostStart HookRun       `json:"postStart,omitzero"`
	PreStop   HookRun       `json:"preStop,omitzero"`
	Startup   ProbeRun      `json:"startup,omitzero"`
	Liveness  ProbeRun      `json:"liveness,omitzero"`
	Readiness ProbeRun      `json:"readiness,omitzero"`

	Kill       *Kill          `json:"kill,omitempty"`       // the latest run is to end, or was ended
	StopIssued *time.Duration `json:"stopIssued,omitempty"` // Boot time of StopContainer to the latest run
	KillIssued bool           `json:"killIssued,omitempty"` // KillContainer was issued to the latest run

	End     *pod.Terminated `json:"end,omitempty"`     // of the latest run that ended
	PrevEnd *pod.Terminated `json:"prevEnd,omitempty"` // of the one before it

	Backoff time.Duration `json:"backoff,omitempty"` // set by the latest restart; see delay
	Unmade  *pod.Waiting  `json:"unmade,omitempty"`  // why, while State is RunUnmade
	Again   bool          `json:"again,omitempty"`   // what it refers to has changed since its start was issued
}

// live says whether a process of the container may exist.
func (c *Container) live() bool { return c.State == RunStarting || c.State == RunRunning }

// container finds what is known of a container; one that was never issued is
// its zero value.
func (o *Observed) container(name string) *Container {
	if c, ok := o.Containers[name]; ok {
		return c
	}
	return &Container{}
}

// anyLive says whether a process of any container of the list may exist.
func (o *Observed) anyLive(list []pod.Container) bool {
	for i := range list {
		if o.container(list[i].Name).live() {
			return true
		}
	}
	return false
}

// idle says whether no process of any container exists.
func (o *Observed) idle(plan *pod.Plan) bool {
	return !slices.ContainsFunc(plan.All(), o.anyLive)
}

// over says whether the pod is to end and nothing of it is left.
func (o *Observed) over(plan *pod.Plan, ending *Ending) bool {
	gone := o.Sandbox == SandboxNone || o.Sandbox == SandboxDown
	return ending != nil && gone && o.idle(plan)
}
