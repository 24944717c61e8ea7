package pod

// Volume is one volume of the pod. Its kind determines which fields are used.
type Volume struct {
	Name string     `json:"name"`
	Kind VolumeKind `json:"kind"`

	// SizeLimit, in bytes, is for a tmpfs; for others see Plan.Storage.
	SizeLimit int64  `json:"sizeLimit,omitempty"`
	Mode      uint32 `json:"mode,omitempty"`     // of an emptyDir; 0: 0777
	PageSize  int64  `json:"pageSize,omitempty"` // of huge pages, in bytes

	Path     string `json:"path,omitempty"`     // hostPath: absolute, on the host
	PathType string `json:"pathType,omitempty"` // hostPath: Kubernetes' word, "" for anything

	// FileLabel is the SELinux label of its files, except for a hostPath, which keeps its own; ""
	// without SELinux.
	FileLabel string `json:"fileLabel,omitempty"`

	Claim    string `json:"claim,omitempty"`    // name of a PersistentVolumeClaim of the pod's namespace
	ReadOnly bool   `json:"readOnly,omitempty"` // for a claim: every mount of it is read-only

	Image  string   `json:"image,omitempty"`  // image: as the manifest spells it
	Layers []string `json:"layers,omitempty"` // image: absolute directories of the unpacked layers, lowest first

	// Sources are the sources of a volume of files. If two have a file of the same path, the later
	// one wins.
	Sources []FileSource `json:"sources,omitempty"`
	Dirs    []string     `json:"dirs,omitempty"` // for a volume of files: empty directories, as mount points for others
}

// ServiceAccountPath is where containers have the files of their service account.
const ServiceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// VolumeKind is the kind of a volume.
type VolumeKind string

const (
	EmptyDir       VolumeKind = "emptyDir"       // a directory on disk, gone with the pod
	EmptyDirMemory VolumeKind = "emptyDirMemory" // one tmpfs shared by the pod
	// EmptyDirHugePages is one hugetlbfs shared by the pod; only root can mount it.
	EmptyDirHugePages VolumeKind = "emptyDirHugePages"

	HostPath    VolumeKind = "hostPath"  // a file or directory of the host
	ClaimVolume VolumeKind = "claim"     // a directory that remains when the pod is removed
	Ephemeral   VolumeKind = "ephemeral" // a claim of the pod's own: a directory on disk, gone with the pod
	ImageVolume VolumeKind = "image"     // the files of an image, read-only
	Files       VolumeKind = "files"     // configMap, secret, downwardAPI, projected: files in memory, read-only
)

// FileSource is one source of a volume of files. A reference is resolved when the volume is made,
// and again when the object changes; the Plan holds no content except the pod's own.
type FileSource struct {
	Kind     FileSourceKind `json:"kind"`
	Name     string         `json:"name,omitempty"` // of the object, in the pod's namespace
	Optional bool           `json:"optional,omitempty"`
	Mode     uint32         `json:"mode"`            // of files without an item
	User     int            `json:"user,omitempty"`  // their owner
	Items    []FileItem     `json:"items,omitempty"` // empty: every key is a file of the same name
}

// FileSourceKind is the kind of a FileSource.
type FileSourceKind string

const (
	FromConfigMap FileSourceKind = "configMap"
	FromSecret    FileSourceKind = "secret"
	FromPod       FileSourceKind = "pod" // the items contain the text
)

// FileItem is one file.
type FileItem struct {
	Key  string `json:"key,omitempty"`  // of the object
	Text string `json:"text,omitempty"` // of a FromPod source
	Path string `json:"path"`           // relative, clean, not beginning with ".."
	Mode uint32 `json:"mode"`
	User int    `json:"user,omitempty"`
}

// Mount puts a volume into a container.
type Mount struct {
	Volume   string `json:"volume"`
	Path     string `json:"path"` // absolute, clean, inside the container
	ReadOnly bool   `json:"readOnly,omitempty"`

	// SubPath is a part of the volume: relative, without "..". In SubPathExpr $(VAR) is expanded
	// when the container is created.
	SubPath     string `json:"subPath,omitempty"`
	SubPathExpr string `json:"subPathExpr,omitempty"`

	// Recursive requests that mounts below are read-only too.
	Recursive RecursiveReadOnly `json:"recursive,omitempty"`

	Propagation Propagation `json:"propagation,omitempty"`
	Options     []string    `json:"options,omitempty"` // nosuid, nodev, noexec
}

// RecursiveReadOnly is Kubernetes' recursiveReadOnly; "" is Disabled.
type RecursiveReadOnly string

const (
	RecursiveEnabled    RecursiveReadOnly = "Enabled"
	RecursiveIfPossible RecursiveReadOnly = "IfPossible"
)

// Propagation selects the direction in which later mounts propagate between container and volume;
// "" is none.
type Propagation string

const (
	HostToContainer Propagation = "HostToContainer" // the container sees later mounts in the volume
	Bidirectional   Propagation = "Bidirectional"   // as HostToContainer, and others see the container's mounts
)

// Group is the pod's fsGroup.
type Group struct {
	ID             int  `json:"id"`
	OnRootMismatch bool `json:"onRootMismatch,omitempty"` // only if the owner or mode of the volume's directory differs
}

func (v *Volume) refers(kind ObjectKind, name string) bool {
	if kind == KindClaim {
		return v.Kind == ClaimVolume && v.Claim == name
	}
	for _, s := range v.Sources {
		if s.Name == name && name != "" && (s.Kind == FromConfigMap && kind == KindConfigMap || s.Kind == FromSecret && kind == KindSecret) {
			return true
		}
	}
	return false
}
