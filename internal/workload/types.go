package workload

import (
	"encoding/json"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// Spec is the desired state of a workload: its Kubernetes spec with all defaults and computed
// numbers. The kind determines which fields are used.
type Spec struct {
	Kind       pod.ObjectKind
	Namespace  string // for messages
	Name       string
	Generation int64
	Deleting   bool // all its pods are removed

	Revision string          // names the template: other pods are outdated
	Template json.RawMessage // the template itself; this package does not read it
	Cause    string          // why the template was changed; "": not known

	Replicas         int
	Strategy         Strategy
	MaxSurge         int // pods beyond Replicas while the revision changes
	MaxUnavailable   int // pods that may be missing meanwhile
	MinReady         time.Duration
	ProgressDeadline time.Duration // 0: none
	Paused           bool
	History          int // how many old revisions are kept

	FirstOrdinal int // of a StatefulSet
	Partition    int // ordinals below it keep their revision
	Parallel     bool

	Job  JobSpec
	Cron CronSpec
}

// Strategy is how pods of an old revision are replaced.
type Strategy string

const (
	Rolling  Strategy = "RollingUpdate"
	Recreate Strategy = "Recreate"
	OnDelete Strategy = "OnDelete" // only pods that a user removes
)

// Pod is the state of a pod that the workload has made.
type Pod struct {
	Name     string
	UID      string
	Revision string
	Index    int // ordinal of a StatefulSet, completion index of a Job; -1: none
	Created  time.Time

	Alive    bool // it has processes
	Stopping bool // it is being stopped
	Phase    pod.Phase
	Ready    bool
	ReadyAt  time.Time // since when it is ready
	Ended    time.Time // when its last container ended; zero: not known
	Restarts int       // of all its containers
	ExitCode int       // of the container that failed, once the phase is Failed

	Ends       []End              // of its containers, then of its init containers, in order
	Conditions []FailureCondition // those that a Job's rules name
}

// active reports whether the pod counts as a desired one.
func (p *Pod) active() bool { return !p.Stopping && !p.Phase.Terminal() }

// available reports whether the pod has been ready for long enough, and if not, when it will be
// (zero: it is not ready).
func (p *Pod) available(min time.Duration, now time.Time) (bool, time.Time) {
	if !p.Ready || !p.active() {
		return false, time.Time{}
	}
	moment := p.ReadyAt.Add(min)
	return !now.Before(moment), moment
}

// State is the saved state of a workload. It outlives reboots.
type State struct {
	Generation int64           `json:"generation"` // last one processed
	Conditions []pod.Condition `json:"conditions,omitempty"`

	Revisions []Revision `json:"revisions,omitempty"` // oldest first; the last one is desired
	Current   string     `json:"current,omitempty"`   // of a StatefulSet: the revision before the desired one
	Progress  time.Time  `json:"progress,omitzero"`   // time of the last progress
	Seen      Counts     `json:"seen,omitzero"`

	// Counted are the uids of ended pods that have been counted.
	Counted  []string  `json:"counted,omitempty"`
	Failures int       `json:"failures,omitempty"` // pods in a row that failed within stableAfter
	FailedAt time.Time `json:"failedAt,omitzero"`  // the last of them

	// CreateError is the reason why no pod could be made, and CreateFailures the number of consecutive
	// failures.
	CreateError    string    `json:"createError,omitempty"`
	CreateFailures int       `json:"createFailures,omitempty"`
	CreateFailedAt time.Time `json:"createFailedAt,omitzero"`

	Events pod.EventLog `json:"events,omitzero"`

	Job  JobState  `json:"job,omitzero"`
	Cron CronState `json:"cron,omitzero"`
}

// Revision is one template that the workload has or had.
type Revision struct {
	Name     string          `json:"name"` // Spec.Revision
	Number   int             `json:"number"`
	Replicas int             `json:"size"` // its desired number of pods
	Template json.RawMessage `json:"template"`
	Cause    string          `json:"cause,omitempty"` // the last Spec.Cause
}

// Counts are the numbers of a workload's status.
type Counts struct {
	Replicas  int `json:"replicas,omitempty"` // active pods
	Updated   int `json:"updated,omitempty"`  // of the newest revision
	Ready     int `json:"ready,omitempty"`
	Available int `json:"available,omitempty"`
}

// Make is a pod to make.
type Make struct {
	Name     string // "": a name that begins with the workload's
	Revision string
	Index    int // -1: none
	Failures int // earlier ones of the index, if they are counted
}

// Decision is the next step. State must be saved before the step is carried out.
type Decision struct {
	Make   []Make
	Remove []string // pods to stop and remove, by name
	State  State
	Counts Counts
	Wake   time.Time // time of the next call at the latest; zero: only after a change

	// Settled: the workload has its desired state. Done: no further call is needed. Delete: the
	// workload is to be removed with its pods.
	Settled, Done, Delete bool

	MakeJob    *Run     // the Job that a CronJob starts now
	RemoveJobs []string // Jobs of a CronJob to remove, by name
}

// wakeAt requests another call of Decide at a time.
func (d *Decision) wakeAt(t time.Time) {
	if !t.IsZero() && (d.Wake.IsZero() || t.Before(d.Wake)) {
		d.Wake = t
	}
}

func (d *Decision) remove(p *Pod) { d.Remove = append(d.Remove, p.Name) }
