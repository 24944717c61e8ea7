// Package pod holds the values that the CLI and the supervisor program exchange: the Plan (the
// desired pod) and the Status (its current state).
//
// It imports only the standard library and touches nothing outside memory.
package pod

import (
	"encoding/json"
	"reflect"
)

// PlanVersion is written into every Plan; a reader rejects a newer one.
const PlanVersion = 1

// Plan is one pod with all defaults applied. The supervisor needs no Kubernetes type. It resolves only
// references to objects, user names and $(VAR), when it makes a container. manifest.Build makes the
// Plan; it is stored as plan.json.
type Plan struct {
	Version   int    `json:"version"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`

	// Labels are matched by the selectors of Services and NetworkPolicies.
	Labels map[string]string `json:"labels,omitempty"`

	Hostname       string      `json:"hostname"`
	Subdomain      string      `json:"subdomain,omitempty"`
	HostnameAsFQDN bool        `json:"hostnameAsFQDN,omitempty"` // the hostname in the kernel includes the domain
	HostAliases    []HostAlias `json:"hostAliases,omitempty"`
	DNS            DNS         `json:"dns,omitzero"`
	Cluster        *Cluster    `json:"cluster,omitempty"` // nil: the pod is not from a Kubernetes cluster

	RestartPolicy         RestartPolicy `json:"restartPolicy"`
	GraceSeconds          int64         `json:"graceSeconds"`                    // terminationGracePeriodSeconds
	ActiveDeadlineSeconds int64         `json:"activeDeadlineSeconds,omitempty"` // 0: none
	ShareProcessNamespace bool          `json:"shareProcessNamespace,omitempty"`
	HostIPC               bool          `json:"hostIPC,omitempty"`      // the host's shared memory, semaphores and queues
	HostPID               bool          `json:"hostPID,omitempty"`      // the host's processes
	OwnUserNS             bool          `json:"ownUserNS,omitempty"`    // its containers have a user namespace of their own
	Users                 *IDRange      `json:"users,omitempty"`        // the pod's own ids; nil: it shares the ids of all pods of the user
	ServiceLinks          bool          `json:"serviceLinks,omitempty"` // variables contain the addresses of the namespace's Services
	QOSClass              string        `json:"qosClass"`

	// ImagesPending is set while images are missing on the machine. The Plan then lacks the settings
	// that come from the images, and is replaced before the pod starts.
	ImagesPending bool `json:"imagesPending,omitempty"`

	// Resources are the effective resources of the whole pod; they set the pod cgroup's limits.
	Resources     Resources         `json:"resources"`
	RequireLimits bool              `json:"requireLimits,omitempty"`
	Sysctls       map[string]string `json:"sysctls,omitempty"`

	// RemoveAtEnd makes the pod remove itself, with its logs and volumes, when it has ended.
	RemoveAtEnd bool `json:"removeAtEnd,omitempty"`

	// ReadinessGates are types of conditions that users set; all must be True for the pod to be
	// Ready.
	ReadinessGates []string `json:"readinessGates,omitempty"`
	HookReason     bool     `json:"hookReason,omitempty"` // preStop hooks receive the reason

	// The log of one run of a container has at most LogMaxFiles files, each of LogMaxBytes plus one
	// line; 0: the defaults.
	LogMaxBytes int64 `json:"logMaxBytes,omitempty"`
	LogMaxFiles int   `json:"logMaxFiles,omitempty"`

	Network NetworkMode `json:"network,omitempty"` // as requested

	// HostLoopback lets the pod reach sockets that listen only on the host's loopback.
	HostLoopback bool `json:"hostLoopback,omitempty"`
	// HostNames are names of the host in the pod's /etc/hosts.
	HostNames []string `json:"hostNames,omitempty"`
	// DNSServers are queried by podrun's resolver instead of the host's.
	DNSServers []string `json:"dnsServers,omitempty"`
	// ClusterServices lets a pod of the user reach the Services of a Kubernetes cluster.
	ClusterServices bool `json:"clusterServices,omitempty"`
	// Ports are the ports of all containers, in the containers' order.
	Ports []Port `json:"ports,omitempty"`

	// FileLabel is the SELinux label of files that podrun makes for the whole pod; "" without
	// SELinux.
	FileLabel string `json:"fileLabel,omitempty"`
	// LayerLabel is the SELinux label of image layers, which all pods share; "" without SELinux.
	LayerLabel string `json:"layerLabel,omitempty"`

	Volumes        []Volume    `json:"volumes,omitempty"`
	FSGroup        *Group      `json:"group,omitempty"`          // group of the volumes; nil: none
	Storage        []Limit     `json:"storage,omitempty"`        // limits on disk use; the first exceeded one counts
	InitContainers []Container `json:"initContainers,omitempty"` // in start order
	Containers     []Container `json:"containers"`
	Ephemeral      []Container `json:"ephemeral,omitempty"` // added while the pod runs, for debugging: each starts at once and runs once
}

// IDRange is a range of Count users and groups from First on, in the numbering of the user's pods.
// The pod that owns the range numbers them from 0.
type IDRange struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Overlaps reports whether an id is in both.
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

// RestartRule restarts after an exit code in ExitCodes, or, with NotIn, after one outside them.
type RestartRule struct {
	NotIn     bool  `json:"notIn,omitempty"`
	ExitCodes []int `json:"exitCodes"`
	All       bool  `json:"all,omitempty"` // restart the whole pod, not only the container
}

// Container is one container of a Plan, init, sidecar or app.
type Container struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`             // as the manifest spells it
	ImageID string   `json:"imageID"`           // sha256:<hex> of the image's config
	Layers  []string `json:"layers"`            // absolute directories of the unpacked layers, lowest first
	Sidecar bool     `json:"sidecar,omitempty"` // an init container with restartPolicy Always (KEP-753)

	// Revision counts the changes of a living pod that require a restart of this container: a run
	// of another revision is ended and replaced.
	Revision int `json:"revision,omitempty"`

	// RestartRequested reports that the latest change was only a request to restart the container, with
	// RestartGraceSeconds instead of the pod's grace period, unless it is nil.
	RestartRequested    bool   `json:"restartRequested,omitempty"`
	RestartGraceSeconds *int64 `json:"restartGraceSeconds,omitempty"`

	// Args is the whole argv; $(VAR) in it is expanded when the container is created, and Args[0]
	// is looked up in its PATH. Env, KEY=value, has the image's variables and the container's
	// defaults; EnvFrom and Vars take precedence. Package environ combines them.
	Args    []string  `json:"args"`
	Env     []string  `json:"env"`
	EnvFrom []EnvFrom `json:"envFrom,omitempty"`
	Vars    []EnvVar  `json:"vars,omitempty"`
	Cwd     string    `json:"cwd"`

	// Stdin keeps the container's standard input open for clients that attach; with StdinOnce it
	// closes when the first client leaves. TTY gives the container a terminal, which is then its
	// input.
	Stdin     bool `json:"stdin,omitempty"`
	StdinOnce bool `json:"stdinOnce,omitempty"`
	TTY       bool `json:"tty,omitempty"`

	// User is the image's spelling ("", "nginx", "1000:1000") or the manifest's
	// numbers ("1000", "1000:1000"). Names are resolved in the container's own
	// passwd and group files when it is created.
	User               string   `json:"user,omitempty"`
	SupplementalGroups []uint32 `json:"supplementalGroups,omitempty"`
	Groups             []string `json:"groups,omitempty"`       // further ones by name or number, resolved like User
	GroupsStrict       bool     `json:"groupsStrict,omitempty"` // the image's group file adds none
	NonRoot            bool     `json:"nonRoot,omitempty"`      // refuse to start as uid 0

	// RestartPolicy and RestartRules are the container's own; "" means the pod's.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	RestartRules  []RestartRule `json:"restartRules,omitempty"` // the first that applies counts
	MaxRestarts   int           `json:"maxRestarts,omitempty"`  // under OnFailure; 0: no limit

	Liveness  *Probe   `json:"liveness,omitempty"`
	Readiness *Probe   `json:"readiness,omitempty"`
	Startup   *Probe   `json:"startup,omitempty"`
	PostStart *Handler `json:"postStart,omitempty"`
	PreStop   *Handler `json:"preStop,omitempty"`

	// Target names a container of the pod whose PID namespace an ephemeral one shares.
	Target string `json:"target,omitempty"`

	// Priority orders the first start of app containers: one starts when all with a higher priority
	// are ready.
	Priority int `json:"priority,omitempty"`

	StopSignal        string   `json:"stopSignal,omitempty"` // "SIGTERM" when empty
	ReadOnlyRoot      bool     `json:"readOnlyRoot,omitempty"`
	NoNewPrivileges   bool     `json:"noNewPrivileges,omitempty"`
	Capabilities      []string `json:"capabilities,omitempty"`      // CAP_… of a process with uid 0
	SeccompUnconfined bool     `json:"seccompUnconfined,omitempty"` // otherwise Seccomp or the runtime's default profile

	// Seccomp is a user's profile, in the format of Docker or of the OCI runtime specification.
	Seccomp json.RawMessage `json:"seccomp,omitempty"`

	// AppArmor is the profile of the container's processes: AppArmorDefault until the host's
	// default is resolved; "" for none.
	AppArmor string `json:"appArmor,omitempty"`

	// Label is the SELinux label of its processes, and FileLabel the label of its root file system; ""
	// if they keep the user's.
	Label     string `json:"label,omitempty"`
	FileLabel string `json:"fileLabel,omitempty"`

	// Privileged gives the container the host's devices that the user may open, and the kernel's
	// unmasked /proc and /sys. Its other effects are in the fields above. ProcUnmasked is for /proc
	// alone.
	Privileged   bool `json:"privileged,omitempty"`
	ProcUnmasked bool `json:"procUnmasked,omitempty"`

	Mounts      []Mount   `json:"mounts,omitempty"`  // parents before children
	Hooks       []Hook    `json:"hooks,omitempty"`   // required by its devices
	Devices     []string  `json:"devices,omitempty"` // their CDI names, vendor.com/class=name
	Resources   Resources `json:"resources"`
	OOMScoreAdj int       `json:"oomScoreAdj"`
	Ulimits     []Ulimit  `json:"ulimits,omitempty"`

	// KeepFiles means that the next instance of the container has the files that this one has written.
	KeepFiles bool `json:"keepFiles,omitempty"`

	TerminationMessagePath string                   `json:"terminationMessagePath"`
	TerminationMessageFrom TerminationMessagePolicy `json:"terminationMessageFrom"`
}

// Ulimit is a resource limit of a container's processes (setrlimit(2)), by docker's name of it: nofile. The highest
// number is no limit.
type Ulimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// Hook is a program of the host that runs at a point of the container's life, named as in the OCI
// runtime specification: createContainer and the like.
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

	// Bytes, if the manifest requests memory QoS: memory that is never reclaimed, memory that is
	// reclaimed last, and the use above which the kernel throttles the container.
	MemoryMin  int64 `json:"memoryMin,omitempty"`
	MemoryLow  int64 `json:"memoryLow,omitempty"`
	MemoryHigh int64 `json:"memoryHigh,omitempty"`

	Pids int64 `json:"pids,omitempty"` // limit of processes and threads
	// PodPids reports that Pids is the pod's own limit, not the sum of its containers'.
	PodPids bool `json:"podPids,omitempty"`

	// HugePages are bytes by the kernel's name of the page size: "2MB", "1GB". It has every size
	// that any container of the pod names; other sizes are not limited.
	HugePages map[string]int64 `json:"hugePages,omitempty"`
}

// IsZero reports whether there is no request and no limit.
func (r Resources) IsZero() bool { return reflect.ValueOf(r).IsZero() }

// Limited reports whether any limit is set.
func (r Resources) Limited() bool { return r.CPULimit > 0 || r.MemoryLimit > 0 || r.Pids > 0 }

// Limit limits the disk use of a part of the pod. A pod that exceeds one is ended with reason
// Evicted and the limit's message.
type Limit struct {
	Kind    LimitKind `json:"kind"`
	Name    string    `json:"name,omitempty"` // of the volume or the container
	Bytes   int64     `json:"bytes"`
	Message string    `json:"message"` // the kubelet's, word for word
}

// LimitKind is the part of the pod that a Limit is about.
type LimitKind string

const (
	VolumeLimit    LimitKind = "volume"    // an emptyDir on disk
	PodLimit       LimitKind = "pod"       // the emptyDirs on disk, the writable layers and the logs
	ContainerLimit LimitKind = "container" // its writable layer and its logs
)

// Image is what manifest.Build needs of an image; package image reads it.
type Image struct {
	Name   string   // normalised reference, "docker.io/library/busybox:1.36"
	ID     string   // sha256:<hex> of the config
	Digest string   // sha256:<hex> of the manifest
	Layers []string // absolute directories of the unpacked layers, lowest first

	Entrypoint, Cmd, Env         []string
	User, WorkingDir, StopSignal string

	Artifact string // the type of an OCI artifact, which only a volume can use; "": a container image
}

// All returns the lists of the plan's containers.
func (p *Plan) All() [][]Container { return [][]Container{p.InitContainers, p.Containers, p.Ephemeral} }

// Container returns a container of any kind by name.
func (p *Plan) Container(name string) (*Container, bool) {
	for _, list := range p.All() {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}
