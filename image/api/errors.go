package api

import "errors"

// ErrNotFound is the error of an image that is not in the store.
var ErrNotFound = errors.New("image is not on this machine")

// ErrRegistryNeeded is the error of an operation that needs a registry while PullOptions.LocalOnly is set.
var ErrRegistryNeeded = errors.New("the image must be pulled")

// The kubelet's reasons for a container that waits for its image (kubernetes pkg/kubelet/images/types.go).
const (
	ErrImagePull      = "ErrImagePull"
	ImagePullBackOff  = "ImagePullBackOff"
	ErrImageNeverPull = "ErrImageNeverPull"
	InvalidImageName  = "InvalidImageName"
	// SignatureValidationFailed means that policy.json forbids the image (cri-api pkg/errors).
	SignatureValidationFailed = "SignatureValidationFailed"
)

// Error is the error of an image that cannot be provided. Reason is the kubelet's.
type Error struct {
	Reason string
	Image  string // as the caller spelt it
	Err    error

	Transient bool // the cause may disappear by itself
}

// Error returns the text of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Reason returns the kubelet's reason in err's chain, or "".
func Reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// IsTransient reports whether the cause of a failed pull may disappear by itself: a network or a registry
// that does not answer.
func IsTransient(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == ErrImagePull && e.Transient
}
