package probe

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// canned is a server that answers everything with the same bytes.
type canned struct {
	net.Conn
	rest []byte
}

func (c *canned) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
func (c *canned) Write(b []byte) (int, error)     { return len(b), nil }
func (c *canned) Close() error                    { return nil }
func (c *canned) SetDeadline(time.Time) error     { return nil }
func (c *canned) SetReadDeadline(time.Time) error { return nil }

// FuzzHTTP: no answer of a server crashes a probe or makes it wait, and only an HTTP answer is a success.
func FuzzHTTP(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 no\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://[::1]:1/\r\n\r\n", "HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nffffffffffffffff\r\n", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "\r\n\r\n",
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New("127.0.0.1", func(context.Context, string, string) (net.Conn, error) {
			return &canned{rest: data}, nil
		})
		const limit = time.Minute
		began := time.Now()
		outcome, message := p.Run(t.Context(), &pod.Handler{HTTP: &pod.HTTPGet{Port: 80, Path: "/"}}, limit)
		if time.Since(began) >= limit {
			t.Fatal("the probe waited for more")
		}
		if outcome == lifecycle.Success && (len(data) < len("HTTP/1.0 200") || string(data[:5]) != "HTTP/") {
			t.Fatalf("%q is a success: %s", data, message)
		}
	})
}

// FuzzGRPC: no answer to a gRPC probe crashes its reader.
func FuzzGRPC(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{0, 0, 0, 0, 12, 0x12, 2, 'a', 'b', 0x0d, 1, 2, 3, 4, 8, 0xff, 1})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := unframe(body)
		if err != nil {
			return
		}
		status, err := decodeStatus(message)
		if err == nil && statusName(status) == "" {
			t.Fatalf("status %d has no name", status)
		}
		if err := (&rpcError{int(status), string(message)}).Error(); err == "" {
			t.Fatal("an error without a word")
		}
	})
}
