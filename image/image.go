package image

import (
	"context"
	"io"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/archive"
	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/image/registry"
)

// The plain types of requests and results: see image/api.
type (
	Account     = api.Account
	Error       = api.Error
	Progress    = api.Progress
	PullOptions = api.PullOptions
	SaveOptions = api.SaveOptions
	Status      = api.Status
	Target      = archive.Target
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
func IsTransient(err error) bool { return registry.IsTransient(err) }

// ParsePlace parses TRANSPORT:PATH[:NAME] as skopeo and podman do.
func ParsePlace(word string) (api.Place, error) { return api.ParsePlace(word) }

// ValidateName returns the error of a reference that names no image, or nil.
func ValidateName(ref string) error { return records.ValidateName(ref) }

// NormalizeName returns a reference with its omitted parts filled in.
func NormalizeName(ref string) string { return records.NormalizeName(ref) }

// IsPinned reports whether a reference always stands for the same image.
func IsPinned(ref string) bool { return records.IsPinned(ref) }

// ToTar returns a Target that writes a tar archive to w. scratch is a directory with room for a layer.
func ToTar(w io.Writer, scratch string) Target { return archive.ToTar(w, scratch) }

// ToDir returns a Target that writes an OCI layout into a directory, which is made if missing.
func ToDir(dir string) (Target, error) { return archive.ToDir(dir) }

// Login checks an account with its registry and stores it. It returns where.
func Login(ctx context.Context, a Account, o PullOptions) (string, error) {
	return registry.Login(ctx, a, o)
}

// Logout removes a stored account, or with "" all of them.
func Logout(name string, o PullOptions) error { return registry.Logout(name, o) }

// LoginUser returns the user whose account is used for a registry.
func LoginUser(name string, o PullOptions) (string, error) { return registry.LoginUser(name, o) }

// RegistryKey validates the name of a registry and returns it in the form of auth files.
func RegistryKey(name string) (string, error) { return registry.RegistryKey(name) }

// ValidateAuthFile returns an error if the text of an auth file is invalid.
func ValidateAuthFile(text []byte) error { return registry.ValidateAuthFile(text) }

// DescribeRegistries returns a sentence about how registries.conf(5) resolves names.
func DescribeRegistries() (string, error) { return registry.DescribeConfig() }

// Stages returns the re-exec entry points that unpack and check layers.
func Stages() map[string]func(args []string) int { return layer.Stages() }
