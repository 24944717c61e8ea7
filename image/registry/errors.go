package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"sync"
	"syscall"

	"go.podman.io/image/v5/docker"

	"github.com/podrun/podrun/image/download"
)

// isTemporary reports whether an error of the network or of a registry is transient. A registry that refuses
// is not asked again.
func isTemporary(err error) bool {
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
		download.ErrStalled, docker.ErrTooManyRequests, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ENETDOWN, syscall.ENETRESET,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return serverError().MatchString(err.Error())
}

// isUnreachable reports whether no server answers.
func isUnreachable(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &name)
}

// serverError matches the library's errors of a failed request for a blob.
var serverError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`StatusCode: 5\d\d|HTTP 5\d\d|HTTP status: 5\d\d`)
})
