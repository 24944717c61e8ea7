package download

import (
	"context"
	"errors"
	"time"
)

// RetryPolicy is how long a registry is waited for, and how often it is asked again.
type RetryPolicy struct {
	AnswerTimeout time.Duration // for a manifest or a config, and for a blob to begin
	StallWindow   time.Duration // in each of these a blob has to bring least bytes:
	MinBytes      int64         // drops that keep a connection alive are no progress
	BlobWaits     []time.Duration
	ManifestWaits []time.Duration
}

// DefaultRetryPolicy: again are the waits between attempts that bring nothing of a blob, ask
// those between attempts at a manifest.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		AnswerTimeout: 2 * time.Minute, StallWindow: time.Minute, MinBytes: 4 << 10,
		BlobWaits:     []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second},
		ManifestWaits: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
	}
}

// ErrStalled says that a connection brings nothing any more.
var ErrStalled = errors.New("the registry sends nothing any more")

// Sleep waits, unless ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
