package api

import "errors"

// ErrNotFound says that an image is not in the store.
var ErrNotFound = errors.New("image is not on this machine")

// ErrRegistryNeeded says that a registry has to be asked for an image, which PullOptions.Here forbids.
var ErrRegistryNeeded = errors.New("a registry has to be asked for the image")

// The kubelet's reasons of a container that waits for its image
// (kubernetes pkg/kubelet/images/types.go).
const (
	ErrImagePull      = "ErrImagePull"
	ImagePullBackOff  = "ImagePullBackOff"
	ErrImageNeverPull = "ErrImageNeverPull"
	InvalidImageName  = "InvalidImageName"
	// SignatureValidationFailed: policy.json does not allow it (cri-api pkg/errors).
	SignatureValidationFailed = "SignatureValidationFailed"
)

// Error says why an image cannot be had. Reason is the kubelet's.
type Error struct {
	Reason string
	Image  string // as the caller spelt it
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Reason finds the kubelet's reason in err's chain, or "".
func Reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}
