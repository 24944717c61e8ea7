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

// The states of a layer that is added.
const (
	Waiting  = api.Waiting
	Fetching = api.Fetching
	Done     = api.Done
	Exists   = api.Exists
)

// The kubelet's reasons of a container that waits for its image.
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

// ErrRegistryNeeded says that a registry has to be asked for an image, which
// PullOptions.LocalOnly forbids.
var ErrRegistryNeeded = api.ErrRegistryNeeded

// Reason finds the kubelet's reason in err's chain, or "".
func Reason(err error) string { return api.Reason(err) }

// IsTransient says whether an image could not be had for a reason that may be gone by itself.
func IsTransient(err error) bool { return registry.IsTransient(err) }

// ParsePlace reads TRANSPORT:PATH[:NAME] as skopeo and podman do.
func ParsePlace(word string) (api.Place, error) { return api.ParsePlace(word) }

// ValidateName is the error of a reference that names no image, or nil.
func ValidateName(ref string) error { return records.ValidateName(ref) }

// NormalizeName is a reference with everything that it leaves out.
func NormalizeName(ref string) string { return records.NormalizeName(ref) }

// IsPinned says whether a reference stands for the same image for ever.
func IsPinned(ref string) bool { return records.IsPinned(ref) }

// ToTar writes images as a tar archive to w. scratch is a directory with room for a layer.
func ToTar(w io.Writer, scratch string) Target { return archive.ToTar(w, scratch) }

// ToDir writes images as an OCI layout into a directory, made if missing.
func ToDir(dir string) (Target, error) { return archive.ToDir(dir) }

// Login checks an account with its registry and keeps it. It returns where.
func Login(ctx context.Context, a Account, o PullOptions) (string, error) {
	return registry.Login(ctx, a, o)
}

// Logout forgets an account, or with "" all of them.
func Logout(name string, o PullOptions) error { return registry.Logout(name, o) }

// LoginUser is the user by whose account a registry is asked.
func LoginUser(name string, o PullOptions) (string, error) { return registry.LoginUser(name, o) }

// RegistryKey checks the name of a registry, and gives it the form of auth files.
func RegistryKey(name string) (string, error) { return registry.RegistryKey(name) }

// ValidateAuthFile says what is wrong with the text of an auth file, if anything.
func ValidateAuthFile(text []byte) error { return registry.ValidateAuthFile(text) }

// DescribeRegistries says in a sentence what registries.conf(5) makes of names.
func DescribeRegistries() (string, error) { return registry.DescribeConfig() }

// Stages are the hidden entry points of the processes that unpack and check layers.
func Stages() map[string]func(args []string) int { return layer.Stages() }
