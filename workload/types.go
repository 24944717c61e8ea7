package workload

import (
	"encoding/json"
	"time"

	"github.com/podrun/podrun/pod"
)

// Spec is what a workload is to be: its Kubernetes spec with everything defaulted and
// counted out. The kind decides which fields are read.
type Spec struct {
	Kind       pod.ObjectKind
	Namespace  string // for what is told
	Name       string
	Generation int64
	Deleting   bool // all its pods are to go

	Revision string          // names the template: other pods are outdated
	Template json.RawMessage // the template itself, which means nothing here

	Replicas         int
	Strategy         Strategy
	MaxSurge         int // pods beyond Replicas while the version changes
	MaxUnavailable   int // pods that may be missing meanwhile
	MinReady         time.Duration
	ProgressDeadline time.Duration // 0: none
	Paused           bool
	History          int // how many old revisions are remembered

	FirstOrdinal int // of a StatefulSet
	Partition    int // so many ordinals stay as they are
	Parallel     bool

	Job  JobSpec
	Cron CronSpec
}

// Strategy is how pods of an old version are replaced.
type Strategy string

const (
	Rolling  Strategy = "RollingUpdate"
	Recreate Strategy = "Recreate"
	OnDelete Strategy = "OnDelete" // only those that somebody removes
)

// Pod is what is known of a pod that the workload has made.
type Pod struct {
	Name     string
	UID      string
	Revision string
	Index    int // ordinal of a StatefulSet, completion index of a Job; -1: none
	Created  time.Time

	Alive    bool // it has processes
	Stopping bool // it was told to end
	Phase    pod.Phase
	Ready    bool
	ReadyAt  time.Time // since when it is
	Ended    time.Time // when its last container ended; zero: not known
	Restarts int       // of all its containers
	ExitCode int       // of the container that failed, once the phase is Failed

	Ends       []End              // of its containers, then of its init containers, in order
	Conditions []FailureCondition // that a Job's rules may ask for
}

// active says whether the pod counts as one of those that are wanted.
func (p *Pod) active() bool { return !p.Stopping && !p.Phase.Terminal() }

// available says whether it has been ready for long enough, and if not, when it will be
// (zero: it is not ready).
func (p *Pod) available(min time.Duration, now time.Time) (bool, time.Time) {
	if !p.Ready || !p.active() {
		return false, time.Time{}
	}
	at := p.ReadyAt.Add(min)
	return !now.Before(at), at
}

// State is what is remembered of a workload. It outlives reboots.
type State struct {
	Generation int64           `json:"generation"` // that was seen last
	Conditions []pod.Condition `json:"conditions,omitempty"`

	Revisions []Revision `json:"revisions,omitempty"` // oldest first; the last one is wanted
	Current   string     `json:"current,omitempty"`   // of a StatefulSet: the revision before the one wanted
	Progress  time.Time  `json:"progress,omitzero"`   // when there was some last
	Seen      Counts     `json:"seen,omitzero"`

	// Counted are the ended pods that have been taken into account, by uid.
	Counted  []string  `json:"counted,omitempty"`
	Failures int       `json:"failures,omitempty"` // pods in a row that failed soon
	FailedAt time.Time `json:"failedAt,omitzero"`  // the last of them

	// Refused is why no pod could be made, and Refusals how often in a row.
	Refused   string    `json:"refused,omitempty"`
	Refusals  int       `json:"refusals,omitempty"`
	RefusedAt time.Time `json:"refusedAt,omitzero"`

	Job  JobState  `json:"job,omitzero"`
	Cron CronState `json:"cron,omitzero"`
}

// Revision is one template that the workload has or had.
type Revision struct {
	Name     string          `json:"name"` // Spec.Revision
	Number   int             `json:"number"`
	Size     int             `json:"size"` // pods that are wanted of it
	Template json.RawMessage `json:"template"`
}

// Counts are the numbers of a workload's status.
type Counts struct {
	Replicas  int `json:"replicas,omitempty"` // pods that count
	Updated   int `json:"updated,omitempty"`  // of the newest revision
	Ready     int `json:"ready,omitempty"`
	Available int `json:"available,omitempty"`
}

// Make is a pod to be made.
type Make struct {
	Name     string // "" for one that begins with the workload's name
	Revision string
	Index    int // -1: none
	Failures int // of the index before, where they are counted
}

// Decision is what is to be done. State is to be kept before anything is done.
type Decision struct {
	Make   []Make
	Remove []string // pods to be stopped and removed, by name
	State  State
	Counts Counts
	Wake   time.Time // look again at the latest then; zero: when something changes

	// Settled says that the workload is as it should be; Done, that nobody needs to
	// look at it again; Delete, that it is to be removed with its pods.
	Settled, Done, Delete bool

	MakeJob    *Run     // the Job that a CronJob starts now
	RemoveJobs []string // Jobs of a CronJob that are to go, by name
}

// wakeAt has Decide asked again at a time.
func (d *Decision) wakeAt(t time.Time) {
	if !t.IsZero() && (d.Wake.IsZero() || t.Before(d.Wake)) {
		d.Wake = t
	}
}

func (d *Decision) remove(p *Pod) { d.Remove = append(d.Remove, p.Name) }
