package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// A unary gRPC call is one HTTP/2 POST with a framed message each way and the status
// in the trailer (grpc: doc/PROTOCOL-HTTP2.md). The messages of grpc.health.v1 have one
// field each: a request its service (1, string), a response its status (1, enum).
const (
	healthCheck = "/grpc.health.v1.Health/Check"
	frameHead   = 5 // compression flag and length
	maxMessage  = 4 << 10

	statusDeadline      = 4
	statusUnimplemented = 12
)

var healthStatus = []string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

const serving = 1

// rpcError is the status of a call that failed.
type rpcError struct {
	code    int
	message string
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("rpc error: code = %s desc = %s", codeName(e.code), e.message)
}

func (p *Prober) grpc(ctx context.Context, g *pod.GRPC, timeout time.Duration) (lifecycle.Outcome, string) {
	ctx, end := withProbeContext(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address := p.address("", g.Port)
	answer, err := p.call(ctx, address, g, timeout)
	var rpc *rpcError
	switch {
	case errors.As(err, &rpc) && rpc.code == statusUnimplemented:
		return lifecycle.Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): " + rpc.message
	case errors.As(err, &rpc) && rpc.code == statusDeadline:
		return lifecycle.Failure, fmt.Sprintf("timeout: health rpc did not complete within %v", timeout)
	case errors.As(err, &rpc):
		return lifecycle.Failure, "error: health rpc probe failed: " + err.Error()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lifecycle.Failure, fmt.Sprintf("timeout: health rpc did not complete within %v", timeout)
	case err != nil:
		return lifecycle.Failure, fmt.Sprintf("error: failed to connect service at %q: %v", address, err)
	}
	status, err := decodeStatus(answer)
	switch {
	case err != nil:
		return lifecycle.Failure, "error: health rpc probe failed: " + err.Error()
	case status != serving:
		return lifecycle.Failure, fmt.Sprintf("service unhealthy (responded with %q)", statusName(status))
	}
	return lifecycle.Success, ""
}

// call makes the call and returns the answer's message.
func (p *Prober) call(ctx context.Context, address string, g *pod.GRPC, timeout time.Duration) ([]byte, error) {
	scheme, transport := "http", p.h2c
	if g.TLS {
		scheme, transport = "https", p.general
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+address+healthCheck, bytes.NewReader(encodeRequest(g.Service)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("User-Agent", "kube-probe/"+version)
	req.Header.Set("Grpc-Timeout", strconv.FormatInt(timeout.Milliseconds(), 10)+"m")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "application/grpc") {
		return nil, &rpcError{2, fmt.Sprintf("unexpected HTTP status code received from server: %d; content-type %q", res.StatusCode, kind)}
	}
	// The trailer is available after the body has been read.
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	if err != nil {
		return nil, &rpcError{2, err.Error()}
	}
	ended := res.Trailer
	if res.Header.Get("Grpc-Status") != "" { // an answer without a message has its status in the header
		ended = res.Header
	}
	code, err := strconv.Atoi(ended.Get("Grpc-Status"))
	if err != nil {
		return nil, &rpcError{2, "server ended the call without a grpc-status"}
	}
	if code != 0 {
		text := ended.Get("Grpc-Message")
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return nil, &rpcError{code, text}
	}
	return unframe(body)
}

// encodeRequest returns the framed request for a service.
func encodeRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = append(message, 1<<3|2) // field 1, a string
		message = binary.AppendUvarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func unframe(body []byte) ([]byte, error) {
	switch {
	case len(body) < frameHead || uint64(len(body)-frameHead) < uint64(binary.BigEndian.Uint32(body[1:])):
		return nil, &rpcError{13, "the response is truncated"}
	case body[0] != 0:
		return nil, &rpcError{13, "the response is compressed, but compression was not requested"}
	}
	return body[frameHead : frameHead+int(binary.BigEndian.Uint32(body[1:]))], nil
}

// decodeStatus returns the status of a response: 0, which is not transmitted, if there is none. It skips
// fields of later versions.
func decodeStatus(message []byte) (status uint64, err error) {
	broken := errors.New("the response is not a HealthCheckResponse")
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return 0, broken
		}
		message = message[n:]
		var skip uint64
		switch key & 7 {
		case 0: // varint
			value, n := binary.Uvarint(message)
			if n <= 0 {
				return 0, broken
			}
			if key>>3 == 1 {
				status = value
			}
			skip = uint64(n)
		case 1:
			skip = 8
		case 2: // length-delimited
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)) {
				return 0, broken
			}
			skip = uint64(n) + length
		case 5:
			skip = 4
		default:
			return 0, broken
		}
		if skip > uint64(len(message)) {
			return 0, broken
		}
		message = message[skip:]
	}
	return status, nil
}

func statusName(status uint64) string {
	if status < uint64(len(healthStatus)) {
		return healthStatus[status]
	}
	return strconv.FormatUint(status, 10)
}

// codeName returns grpc's name of a code (codes.Code.String).
func codeName(code int) string {
	names := []string{"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"}
	if code >= 0 && code < len(names) {
		return names[code]
	}
	return fmt.Sprintf("Code(%d)", code)
}
