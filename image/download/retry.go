package download

import (
	"errors"
	"time"
)

// RetryPolicy configures how long to wait for a registry, and how often to retry.
type RetryPolicy struct {
	AnswerTimeout time.Duration // for a manifest or a config, and for the first byte of a blob
	StallWindow   time.Duration // in each window a blob must receive at least MinBytes;
	MinBytes      int64         // fewer bytes only keep the connection alive
	BlobWaits     []time.Duration
	ManifestWaits []time.Duration
}

// DefaultRetryPolicy returns the policy for real registries. BlobWaits are the waits between attempts that
// receive nothing of a blob, ManifestWaits those between attempts at a manifest.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		AnswerTimeout: 2 * time.Minute, StallWindow: time.Minute, MinBytes: 4 << 10,
		BlobWaits:     []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second},
		ManifestWaits: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
	}
}

// ErrStalled is the error of a connection that sends nothing any more.
var ErrStalled = errors.New("the registry has stopped sending")
