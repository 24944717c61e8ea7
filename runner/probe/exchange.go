package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
)

// exchange sends a request by HTTP/1.1 and reads the answer, on a connection of its own, in the calling
// goroutine: a Transport starts three more goroutines for a request, each of which wakes threads. The error
// messages are the same as a Transport's. Requests other than plain HTTP, to which a redirect may lead, go to
// another RoundTripper.
type exchange struct {
	dial   Dial
	others http.RoundTripper
}

func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "http" {
		return x.others.RoundTrip(req)
	}
	if err := sendable(req.Header); err != nil {
		return nil, err
	}
	port := req.URL.Port()
	if port == "" {
		port = "80"
	}
	ctx := req.Context()
	conn, err := x.dial(ctx, "tcp", net.JoinHostPort(req.URL.Hostname(), port))
	if err != nil {
		return nil, err
	}
	a := &answer{conn: conn, ctx: ctx}
	a.stop = context.AfterFunc(ctx, func() { conn.Close() })
	res, err := a.to(req)
	if err != nil {
		a.Close()
		return nil, a.reason(err)
	}
	a.body, res.Body = res.Body, a
	return res, nil
}

// sendable returns an error for values that a header cannot contain (RFC 9110, section 5.5).
func sendable(header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("net/http: invalid header field value for %q", name)
			}
		}
	}
	return nil
}

// answer reads from a connection, which ends with the answer or with ctx.
type answer struct {
	conn net.Conn
	ctx  context.Context
	stop func() bool
	body io.ReadCloser
}

// to sends a request and reads the answer up to its body.
func (a *answer) to(req *http.Request) (*http.Response, error) {
	once := req.WithContext(a.ctx)
	once.Close = true
	out := bufio.NewWriterSize(a.conn, buffer)
	if err := once.Write(out); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	limit := &io.LimitedReader{R: a.conn, N: maxHeader}
	in := bufio.NewReaderSize(limit, buffer)
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	for {
		res, err := http.ReadResponse(in, once)
		switch {
		case err != nil && limit.N <= 0:
			return nil, fmt.Errorf("net/http: server response headers exceeded %d bytes; aborted", maxHeader)
		case err != nil:
			return nil, fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", err)
		case res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols:
			limit.N = math.MaxInt64 // the reader of the body limits that
			return res, nil
		}
	}
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.body.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.reason(err)
	}
	return n, err
}

// Close ends the connection.
func (a *answer) Close() error {
	a.stop()
	return a.conn.Close()
}

// reason returns the error of ctx if err was caused by its end.
func (a *answer) reason(err error) error {
	if ended := a.ctx.Err(); ended != nil {
		return ended
	}
	return err
}
