package pod

import "time"

// StatusVersion is written into every Status; a reader refuses a newer one.
const StatusVersion = 1

// Status is what podrun knows of a pod; manifest.Render gives it as a
// Kubernetes PodStatus. It is stored as status.json.
type Status struct {
	Version    int         `json:"version"`
	Phase      Phase       `json:"phase"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	StartTime  time.Time   `json:"startTime"`
	Deleting   bool        `json:"deleting,omitempty"`   // a stop was asked for
	Deletion   *Deletion   `json:"deletion,omitempty"`   // when that ends at the latest
	PodIPs     []string    `json:"podIPs,omitempty"`     // the pod's addresses, IPv4 first
	HostIPs    []string    `json:"hostIPs,omitempty"`    // the machine's towards others, when the pod was connected
	Network    NetworkMode `json:"network,omitempty"`    // how the pod reaches the world, once it does
	NetworkWhy string      `json:"networkWhy,omitempty"` // why not by NetworkMasquerade, where that was tried
	Cgroup     string      `json:"cgroup,omitempty"`     // directory of the pod cgroup, where there is or was one
	BootID     string      `json:"bootID,omitempty"`
	Warnings   []string    `json:"warnings,omitempty"` // each is said once by the command that started the pod
	Conditions []Condition `json:"conditions,omitempty"`

	// ShallowReadOnly says that the kernel cannot make a mount read-only with all below it.
	ShallowReadOnly bool `json:"shallowReadOnly,omitempty"`

	// Awaits is set until all images are on the machine and the pod has been started.
	Awaits *Awaiting `json:"awaits,omitempty"`

	InitContainers []ContainerStatus `json:"initContainers,omitempty"` // in the Plan's order
	Containers     []ContainerStatus `json:"containers"`
	Ephemeral      []ContainerStatus `json:"ephemeral,omitempty"`
}

// Deletion is the grace of a stop that was asked for, and when it is over.
type Deletion struct {
	At           time.Time `json:"at"`
	GraceSeconds int64     `json:"graceSeconds"`
}

// Awaiting is how it stands with the images of a pod that waits for them. Error is why the last
// attempt failed, and "" while there is one; another follows whatever it is.
type Awaiting struct {
	Attempts int           `json:"attempts,omitempty"` // that failed
	Error    string        `json:"error,omitempty"`
	Reason   string        `json:"reason,omitempty"` // ErrImagePull and the like, or ""
	Hint     string        `json:"hint,omitempty"`
	Passes   bool          `json:"passes,omitempty"` // the next attempt may succeed though nobody does anything
	Next     time.Duration `json:"next,omitempty"`   // from the end of the last attempt to the next
}

// Phase is the PodPhase of Kubernetes.
type Phase string

const (
	Pending   Phase = "Pending"
	Running   Phase = "Running"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Unknown   Phase = "Unknown"
)

// ReasonEvicted is the reason of a pod that kept more on disk than it may.
const ReasonEvicted = "Evicted"

// ReasonTerminated is the reason of a pod that was ended with the machine, and goes on when
// it is started again (kubelet: pkg/kubelet/nodeshutdown).
const ReasonTerminated = "Terminated"

// ReasonPaused is the reason of a pod whose containers a user has paused.
const ReasonPaused = "Paused"

// Terminal says whether a pod in this phase never changes again.
func (p Phase) Terminal() bool { return p == Succeeded || p == Failed }

// Condition is one PodCondition. Status is "True", "False" or "Unknown".
type Condition struct {
	Type           string    `json:"type"`
	Status         string    `json:"status"`
	Reason         string    `json:"reason,omitempty"`
	Message        string    `json:"message,omitempty"`
	LastTransition time.Time `json:"lastTransition"`
}

// ContainerStatus is one container's state, the state before it, and counters.
type ContainerStatus struct {
	Name         string `json:"name"`
	State        State  `json:"state"`
	LastState    State  `json:"lastState,omitzero"`
	Ready        bool   `json:"ready"`
	Started      bool   `json:"started"`
	RestartCount int    `json:"restartCount"`
	ContainerID  string `json:"containerID,omitempty"` // podrun://<id>
	Image        string `json:"image"`
	ImageID      string `json:"imageID"`
	User         *User  `json:"user,omitempty"` // nil: none has run
}

// User is who the first process of a container is, by the container's own numbers.
type User struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups,omitempty"` // supplementary
}

// State has at most one of its fields set; none means "waiting, not yet said why".
type State struct {
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Running    *RunningAt  `json:"running,omitempty"`
	Terminated *Terminated `json:"terminated,omitempty"`
}

// Waiting carries the kubelet's reason: PodInitializing, ContainerCreating, CrashLoopBackOff, …
type Waiting struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// RunningAt says since when.
type RunningAt struct {
	StartedAt time.Time `json:"startedAt"`
}

// Terminated carries the kubelet's reason: Completed, Error, OOMKilled, StartError, …
type Terminated struct {
	ExitCode    int       `json:"exitCode"`
	Signal      int       `json:"signal,omitempty"`
	Reason      string    `json:"reason"`
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"startedAt"`
	FinishedAt  time.Time `json:"finishedAt"`
	ContainerID string    `json:"containerID,omitempty"`
}
