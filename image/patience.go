package image

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/containers/image/v5/docker"
)

// patience is how long a registry is waited for, and how often it is asked again.
type patience struct {
	answer time.Duration // for a manifest or a config, and for a blob to begin
	window time.Duration // in each of these a blob has to bring least bytes:
	least  int64         // drops that keep a connection alive are no progress
	again  []time.Duration
	ask    []time.Duration
}

// usualPatience: again are the waits between attempts that bring nothing of a blob, ask
// those between attempts at a manifest.
func usualPatience() patience {
	return patience{
		answer: 2 * time.Minute, window: time.Minute, least: 4 << 10,
		again: []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second},
		ask:   []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
	}
}

// errStalled says that a connection brings nothing any more.
var errStalled = errors.New("the registry sends nothing any more")

// passing says whether an error of the network or of a registry may be gone by itself in
// a moment. A registry that says no is not asked again.
func passing(err error) bool {
	var status docker.UnexpectedHTTPStatusError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return status.StatusCode >= 500
	case errors.As(err, &timeout) && timeout.Timeout():
		return true
	}
	for _, e := range []error{
		errStalled, docker.ErrTooManyRequests, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENETDOWN, syscall.ENETRESET,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return serverError().MatchString(err.Error())
}

// unreachable says whether nobody answers at all.
func unreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name)
}

// serverError is what the library says of an answer to a request for a blob.
var serverError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`StatusCode: 5\d\d|HTTP 5\d\d|HTTP status: 5\d\d`)
})

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
