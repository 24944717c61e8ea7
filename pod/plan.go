// Package pod holds the values that the two halves of podrun exchange: the
// Plan (what a pod is to be) and the Status (what has become of it).
//
// It imports only the standard library and touches nothing outside memory.
package pod

import (
	"encoding/json"
	"reflect"
)

// PlanVersion is written into every Plan; a reader refuses a newer one.
const PlanVersion = 1

// Plan is one pod with everything decided: no defaulting, no look-up and no
// Kubernetes type is left for the supervisor. It is built by manifest.Build and
// stored as plan.json.
type Plan struct {
	Version   int    `json:"version"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`

	// Labels are what Services select the pod by.
	Labels map[string]string `json:"labels,omitempty"`

	Hostname       string      `json:"hostname"`
	Subdomain      string      `json:"subdomain,omitempty"`
	HostnameAsFQDN bool        `json:"hostnameAsFQDN,omitempty"` // the kernel's name of the pod has its domain
	HostAliases    []HostAlias `json:"hostAliases,omitempty"`
	DNS            DNS         `json:"dns,omitzero"`

	RestartPolicy         RestartPolicy `json:"restartPolicy"`
	GraceSeconds          int64         `json:"graceSeconds"`                    // terminationGracePeriodSeconds
	ActiveDeadlineSeconds int64         `json:"activeDeadlineSeconds,omitempty"` // 0: none
	ShareProcessNamespace bool          `json:"shareProcessNamespace,omitempty"`
	HostIPC               bool          `json:"hostIPC,omitempty"`      // the host's shared memory, semaphores and queues
	HostPID               bool          `json:"hostPID,omitempty"`      // the host's processes
	Apart                 bool          `json:"apart,omitempty"`        // its containers have a user namespace of their own
	Users                 *IDRange      `json:"users,omitempty"`        // ids of its own; nil: those of all pods of the user
	ServiceLinks          bool          `json:"serviceLinks,omitempty"` // variables tell of the namespace's Services
	QOSClass              string        `json:"qosClass"`

	// Awaits says that not all images are on the machine: what they decide is not in the Plan,
	// and nothing runs by it. Another Plan replaces it before the pod starts.
	Awaits bool `json:"awaits,omitempty"`

	// Resources are the effective ones of the whole pod: they size the pod cgroup.
	Resources     Resources         `json:"resources"`
	RequireLimits bool              `json:"requireLimits,omitempty"`
	Sysctls       map[string]string `json:"sysctls,omitempty"`

	// ReadinessGates are types of conditions that users set, and that must be True for
	// the pod to be Ready.
	ReadinessGates []string `json:"readinessGates,omitempty"`
	HookReason     bool     `json:"hookReason,omitempty"` // preStop hooks are told why

	// The log of an instance of a container has at most LogMaxFiles files, each of
	// LogMaxBytes and one line; 0: the defaults.
	LogMaxBytes int64 `json:"logMaxBytes,omitempty"`
	LogMaxFiles int   `json:"logMaxFiles,omitempty"`

	Network NetworkMode `json:"network,omitempty"` // as asked for

	// HostLoopback lets the pod reach what listens on the host's loopback only.
	HostLoopback bool `json:"hostLoopback,omitempty"`
	// Ports are those of all containers, in their order.
	Ports []Port `json:"ports,omitempty"`

	// FileLabel is SELinux's, of the files that podrun makes for all of the pod; "" where
	// there are no labels.
	FileLabel string `json:"fileLabel,omitempty"`
	// LayerLabel is SELinux's, of the layers of images, which all pods share; "" where
	// there are no labels.
	LayerLabel string `json:"layerLabel,omitempty"`

	Volumes        []Volume    `json:"volumes,omitempty"`
	Group          *Group      `json:"group,omitempty"`          // volumes are given to it; nil: none
	Storage        []Limit     `json:"storage,omitempty"`        // what it may keep on disk; the first that is exceeded counts
	InitContainers []Container `json:"initContainers,omitempty"` // in start order
	Containers     []Container `json:"containers"`
	Ephemeral      []Container `json:"ephemeral,omitempty"` // added while it runs, to look into it: begun at once and once
}

// IDRange are Count users and groups, from First on as the user's pods number them. The pod
// that has them numbers them from 0 on.
type IDRange struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Overlaps says whether an id is in both.
func (r IDRange) Overlaps(o IDRange) bool {
	return r.First < o.First+o.Count && o.First < r.First+r.Count
}

// The kubelet's defaults of containerLogMaxSize and containerLogMaxFiles.
const (
	DefaultLogMaxBytes = 10 << 20
	DefaultLogMaxFiles = 5
)

// RestartPolicy is the kubelet's: Always, OnFailure or Never.
type RestartPolicy string

const (
	RestartAlways    RestartPolicy = "Always"
	RestartOnFailure RestartPolicy = "OnFailure"
	RestartNever     RestartPolicy = "Never"
)

// RestartRule asks for a restart after an exit code that is among ExitCodes, or, with
// NotIn, after one that is not.
type RestartRule struct {
	NotIn     bool  `json:"notIn,omitempty"`
	ExitCodes []int `json:"exitCodes"`
	All       bool  `json:"all,omitempty"` // not the container alone, but all of the pod
}

// Container is one container of a Plan, init, sidecar or app.
type Container struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`             // as the manifest spells it
	ImageID string   `json:"imageID"`           // sha256:<hex> of the image's config
	Layers  []string `json:"layers"`            // absolute directories of the unpacked layers, lowest first
	Sidecar bool     `json:"sidecar,omitempty"` // an init container with restartPolicy Always (KEP-753)

	// Revision counts the changes of a living pod that take a restart of this container:
	// a run of another revision is ended, and followed by one of this.
	Revision int `json:"revision,omitempty"`

	// Asked says that the latest change was a wish to restart it, which changes nothing else.
	Asked bool `json:"asked,omitempty"`

	// Args are the whole argv; $(VAR) in them is expanded when the container is created,
	// and Args[0] looked up in its PATH. Env, KEY=value, is what the container has of
	// itself and its image; what EnvFrom and Vars say wins. The room environ puts them
	// together.
	Args    []string  `json:"args"`
	Env     []string  `json:"env"`
	EnvFrom []EnvFrom `json:"envFrom,omitempty"`
	Vars    []EnvVar  `json:"vars,omitempty"`
	Cwd     string    `json:"cwd"`

	// Stdin keeps the container's standard input open for who attaches; with StdinOnce it
	// is closed when the first of them has gone. TTY gives it a terminal, which is its
	// input too.
	Stdin     bool `json:"stdin,omitempty"`
	StdinOnce bool `json:"stdinOnce,omitempty"`
	TTY       bool `json:"tty,omitempty"`

	// User is the image's spelling ("", "nginx", "1000:1000") or the manifest's
	// numbers ("1000", "1000:1000"). Names are resolved in the container's own
	// passwd and group files when it is created.
	User               string   `json:"user,omitempty"`
	SupplementalGroups []uint32 `json:"supplementalGroups,omitempty"`
	GroupsStrict       bool     `json:"groupsStrict,omitempty"` // the image's group file adds none
	NonRoot            bool     `json:"nonRoot,omitempty"`      // refuse to start as uid 0

	// RestartPolicy and RestartRules are the container's own; "" is the pod's.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	RestartRules  []RestartRule `json:"restartRules,omitempty"` // the first that applies counts

	Liveness  *Probe   `json:"liveness,omitempty"`
	Readiness *Probe   `json:"readiness,omitempty"`
	Startup   *Probe   `json:"startup,omitempty"`
	PostStart *Handler `json:"postStart,omitempty"`
	PreStop   *Handler `json:"preStop,omitempty"`

	// Target names a container of the pod whose PID namespace an ephemeral one shares.
	Target string `json:"target,omitempty"`

	// Priority orders the first start of app containers: one starts when all those
	// with a higher priority are ready.
	Priority int `json:"priority,omitempty"`

	StopSignal        string   `json:"stopSignal,omitempty"` // "SIGTERM" when empty
	ReadOnlyRoot      bool     `json:"readOnlyRoot,omitempty"`
	NoNewPrivileges   bool     `json:"noNewPrivileges,omitempty"`
	Capabilities      []string `json:"capabilities,omitempty"`      // CAP_… of a process with uid 0
	SeccompUnconfined bool     `json:"seccompUnconfined,omitempty"` // otherwise Seccomp or the runtime's default profile

	// Seccomp is a profile of the user's, in Docker's form or that of the OCI runtime
	// specification.
	Seccomp json.RawMessage `json:"seccomp,omitempty"`

	// AppArmor is the profile that its processes change to: AppArmorDefault until it is
	// known what this is here; "" for none.
	AppArmor string `json:"appArmor,omitempty"`

	// Label is SELinux's, of its processes, and FileLabel that of its root file system; ""
	// where they keep the user's.
	Label     string `json:"label,omitempty"`
	FileLabel string `json:"fileLabel,omitempty"`

	// Privileged: the devices of the host that the user may open, and /proc and /sys as
	// the kernel has them; what else it means is in the fields above. ProcUnmasked is for
	// /proc alone.
	Privileged   bool `json:"privileged,omitempty"`
	ProcUnmasked bool `json:"procUnmasked,omitempty"`

	Mounts      []Mount   `json:"mounts,omitempty"` // parents before children
	Hooks       []Hook    `json:"hooks,omitempty"`  // that come with its devices
	Resources   Resources `json:"resources"`
	OOMScoreAdj int       `json:"oomScoreAdj"`

	TerminationMessagePath string                   `json:"terminationMessagePath"`
	TerminationMessageFrom TerminationMessagePolicy `json:"terminationMessageFrom"`
}

// Hook is a program of the host's that is run at a moment of the container's life, which
// has the name that the OCI runtime specification gives it: createContainer and the like.
type Hook struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"` // the whole argv
	Env     []string `json:"env,omitempty"`
	Timeout int      `json:"timeout,omitempty"` // seconds; 0: none
}

// AppArmorDefault stands for the default profile of the host's container runtimes.
const AppArmorDefault = "runtime/default"

// TerminationMessagePolicy is the kubelet's: File or FallbackToLogsOnError.
type TerminationMessagePolicy string

const (
	MessageFile           TerminationMessagePolicy = "File"
	MessageFallbackToLogs TerminationMessagePolicy = "FallbackToLogsOnError"
)

// Resources in base units. Zero means "not set" for every field.
type Resources struct {
	CPURequest    int64 `json:"cpuRequest,omitempty"`    // millicores
	CPULimit      int64 `json:"cpuLimit,omitempty"`      // millicores
	MemoryRequest int64 `json:"memoryRequest,omitempty"` // bytes
	MemoryLimit   int64 `json:"memoryLimit,omitempty"`   // bytes

	// Bytes, where the manifest asks for memory QoS: never taken away, taken away last,
	// and the use from which on what uses more is slowed down.
	MemoryMin  int64 `json:"memoryMin,omitempty"`
	MemoryLow  int64 `json:"memoryLow,omitempty"`
	MemoryHigh int64 `json:"memoryHigh,omitempty"`

	// HugePages are bytes by the kernel's name of the page size: "2MB", "1GB". A size
	// that any container of the pod names is here for each; the others are not limited.
	HugePages map[string]int64 `json:"hugePages,omitempty"`
}

// IsZero says whether nothing is asked for and nothing limited.
func (r Resources) IsZero() bool { return reflect.ValueOf(r).IsZero() }

// Limited says whether any limit is set.
func (r Resources) Limited() bool { return r.CPULimit > 0 || r.MemoryLimit > 0 }

// Limit is what a part of the pod may keep on disk. A pod that exceeds one is
// ended with reason Evicted and the limit's message.
type Limit struct {
	Kind    LimitKind `json:"kind"`
	Name    string    `json:"name,omitempty"` // of the volume or the container
	Bytes   int64     `json:"bytes"`
	Message string    `json:"message"` // the kubelet's, word for word
}

// LimitKind says what a Limit is about.
type LimitKind string

const (
	VolumeLimit    LimitKind = "volume"    // an emptyDir on disk
	PodLimit       LimitKind = "pod"       // the emptyDirs on disk, the writable layers and the logs
	ContainerLimit LimitKind = "container" // its writable layer and its logs
)

// Image is what manifest.Build needs of an image, as the image room found it.
type Image struct {
	Name   string   // normalised reference, "docker.io/library/busybox:1.36"
	ID     string   // sha256:<hex> of the config
	Digest string   // sha256:<hex> of the manifest
	Layers []string // absolute directories of the unpacked layers, lowest first

	Entrypoint, Cmd, Env         []string
	User, WorkingDir, StopSignal string
}
