package image

import (
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/credentials"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
)

// The plain types of requests and results: see image/api.
type (
	Account     = api.Account
	Error       = api.Error
	Progress    = api.Progress
	PullOptions = api.PullOptions
	SaveOptions = api.SaveOptions
	Status      = api.Status
	Target      = api.Target
	Verified    = api.Verified
)

// The states of a layer that is being added.
const (
	Waiting  = api.Waiting
	Fetching = api.Fetching
	Done     = api.Done
	Exists   = api.Exists
)

// The kubelet's reasons for a container that waits for its image.
const (
	ErrImagePull              = api.ErrImagePull
	ImagePullBackOff          = api.ImagePullBackOff
	ErrImageNeverPull         = api.ErrImageNeverPull
	InvalidImageName          = api.InvalidImageName
	SignatureValidationFailed = api.SignatureValidationFailed
)

// The formats of Save.
const (
	OCIArchive    = api.OCIArchive
	OCIDir        = api.OCIDir
	DockerArchive = api.DockerArchive
)

// ErrRegistryNeeded is the error of an operation that needs a registry while PullOptions.LocalOnly is set.
var ErrRegistryNeeded = api.ErrRegistryNeeded

// Reason returns the kubelet's reason in err's chain, or "".
func Reason(err error) string { return api.Reason(err) }

// IsTransient reports whether the cause of a failed pull may disappear by itself.
func IsTransient(err error) bool { return api.IsTransient(err) }

// The annotations of an artifact that say where its files come from, and the one that names the file of a layer.
const (
	AnnotationCreated  = v1.AnnotationCreated
	AnnotationSource   = v1.AnnotationSource
	AnnotationRevision = v1.AnnotationRevision
	AnnotationVersion  = v1.AnnotationVersion
	AnnotationTitle    = v1.AnnotationTitle
)

// ParseLocation parses TRANSPORT:PATH[:NAME] as skopeo and podman do.
func ParseLocation(word string) (api.Location, error) { return api.ParseLocation(word) }

// ValidateName returns the error of a reference that names no image, or nil.
func ValidateName(ref string) error { return records.ValidateName(ref) }

// NormalizeName returns a reference with its omitted parts filled in.
func NormalizeName(ref string) string { return records.NormalizeName(ref) }

// IsPinned reports whether a reference always stands for the same image.
func IsPinned(ref string) bool { return records.IsPinned(ref) }

// RegistryKey validates the name of a registry and returns it in the form of auth files.
func RegistryKey(name string) (string, error) { return credentials.RegistryKey(name) }

// ValidateAuthFile returns an error if the text of an auth file is invalid.
func ValidateAuthFile(text []byte) error { return credentials.ValidateAuthFile(text) }

// EntryPoints returns the re-exec entry points that unpack, rebuild and remove layers.
func EntryPoints() map[string]func(args []string) int { return layer.EntryPoints() }
