package pod

import "time"

// StatusVersion is written into every Status; a reader rejects a newer one.
const StatusVersion = 1

// Status is the current state of a pod; manifest.Render converts it to a Kubernetes PodStatus. It
// is stored as status.json.
type Status struct {
	Version    int         `json:"version"`
	Phase      Phase       `json:"phase"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	StartTime  time.Time   `json:"startTime"`
	Deleting   bool        `json:"deleting,omitempty"`   // a stop was requested
	Deletion   *Deletion   `json:"deletion,omitempty"`   // the deadline of the stop
	PodIPs     []string    `json:"podIPs,omitempty"`     // the pod's addresses, IPv4 first
	HostIPs    []string    `json:"hostIPs,omitempty"`    // the machine's outward addresses at the time the pod was connected
	Network    NetworkMode `json:"network,omitempty"`    // the mode in use, once the network is up
	NetworkWhy string      `json:"networkWhy,omitempty"` // why NetworkMasquerade failed, if it was tried
	Cgroup     string      `json:"cgroup,omitempty"`     // directory of the pod cgroup, if there is or was one
	BootID     string      `json:"bootID,omitempty"`
	Warnings   []string    `json:"warnings,omitempty"` // the command that started the pod prints each once
	Conditions []Condition `json:"conditions,omitempty"`

	// ShallowReadOnly reports that the kernel cannot make a mount recursively read-only.
	ShallowReadOnly bool `json:"shallowReadOnly,omitempty"`

	// ImagePull is set until all images are on the machine and the pod has been started.
	ImagePull *ImagePull `json:"imagePull,omitempty"`

	InitContainers []ContainerStatus `json:"initContainers,omitempty"` // in the Plan's order
	Containers     []ContainerStatus `json:"containers"`
	Ephemeral      []ContainerStatus `json:"ephemeral,omitempty"`
}

// Deletion is the deadline of a requested stop, and the grace period that led to it.
type Deletion struct {
	At           time.Time `json:"at"`
	GraceSeconds int64     `json:"graceSeconds"`
}

// ImagePull is the state of a pod that waits for its images. Error is the reason of the last
// attempt's failure, and "" during an attempt; another attempt always follows.
type ImagePull struct {
	Attempts  int           `json:"attempts,omitempty"` // failed ones
	Error     string        `json:"error,omitempty"`
	Reason    string        `json:"reason,omitempty"` // ErrImagePull and the like, or ""
	Hint      string        `json:"hint,omitempty"`
	Retryable bool          `json:"retryable,omitempty"` // the next attempt may succeed without any change by the user
	Next      time.Duration `json:"next,omitempty"`      // from the end of the last attempt to the next
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

// ReasonEvicted is the reason of a pod that exceeded a limit on disk use, or that a node low on a resource has evicted.
const ReasonEvicted = "Evicted"

// ReasonTerminated is the reason of a pod that ended because the machine shut down, and that starts
// again with it (kubelet: pkg/kubelet/nodeshutdown).
const ReasonTerminated = "Terminated"

// ReasonPaused is the reason of a pod whose containers a user has paused.
const ReasonPaused = "Paused"

// Terminal reports whether a pod in this phase never changes again.
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
	Unhealthy    bool   `json:"unhealthy,omitempty"` // it runs, and its readiness probe has failed failureThreshold times in a row
	RestartCount int    `json:"restartCount"`
	ContainerID  string `json:"containerID,omitempty"` // podrun://<id>
	Image        string `json:"image"`
	ImageID      string `json:"imageID"`
	User         *User  `json:"user,omitempty"` // nil: none has run
}

// User is the identity of a container's first process, in the container's own numbers.
type User struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups,omitempty"` // supplementary
}

// State has at most one field set; none means "waiting, reason not known yet".
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

// RunningAt has the start time of a running container.
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

// Exit is the end of a container's latest run, if no other run follows.
type Exit struct {
	Attempt  int    `json:"attempt"` // the restart count
	ExitCode int    `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Container returns the status of a container of any kind by name.
func (s *Status) Container(name string) (*ContainerStatus, bool) {
	for _, list := range [][]ContainerStatus{s.InitContainers, s.Containers, s.Ephemeral} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}
