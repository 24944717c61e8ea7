package probe

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/pod"
)

// TestPlainRequest: the rendered request is what Run sends, byte for byte, to the same address.
func TestPlainRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, h := range []pod.HTTPGet{
		{Path: "/"},
		{Path: ""},
		{Path: "/a b?c=d&e", Host: "127.0.0.1"},
		{Path: "%zz"},
		{Path: "/", Headers: []pod.Header{{Name: "Host", Value: "example.com"}, {Name: "X", Value: "1"}, {Name: "x", Value: "2"}, {Name: "Accept", Value: ""}, {Name: "User-Agent", Value: "me"}}},
	} {
		h.Port = portOf(t, l.Addr().String())
		got := make(chan string)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				got <- err.Error()
				return
			}
			b := make([]byte, 4096)
			n, _ := conn.Read(b)
			conn.Close()
			got <- string(b[:n])
		}()
		local().Run(context.Background(), &pod.Handler{HTTP: &h}, time.Minute)
		server, request, ok := local().Plain(&pod.Handler{HTTP: &h})
		if sent := <-got; !ok || server.String() != l.Addr().String() || sortedLines(request) != sortedLines(sent) {
			t.Errorf("%+v: %v %v %q, but Run sends %q", h, ok, server, request, sent)
		}
	}
}

// sortedLines returns a request with its headers in alphabetical order.
func sortedLines(request string) string {
	lines := strings.Split(request, "\r\n")
	slices.Sort(lines[min(1, len(lines)):])
	return strings.Join(lines, "\r\n")
}

// TestPlain: only connections within the pod, by TCP and HTTP, are plain.
func TestPlain(t *testing.T) {
	p := New("10.88.0.8", func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed })
	for _, test := range []struct {
		name   string
		h      pod.Handler
		server string // "": it is not plain
	}{
		{"TCP", pod.Handler{TCP: &pod.TCPSocket{Port: 80}}, "10.88.0.8:80"},
		{"TCP on localhost", pod.Handler{TCP: &pod.TCPSocket{Host: "::1", Port: 80}}, "[::1]:80"},
		{"TCP, by name", pod.Handler{TCP: &pod.TCPSocket{Host: "localhost", Port: 80}}, ""},
		{"TCP, outside", pod.Handler{TCP: &pod.TCPSocket{Host: "10.88.0.9", Port: 80}}, ""},
		{"no port", pod.Handler{TCP: &pod.TCPSocket{Port: 0}}, ""},
		{"HTTP", pod.Handler{HTTP: &pod.HTTPGet{Port: 80}}, "10.88.0.8:80"},
		{"HTTPS", pod.Handler{HTTP: &pod.HTTPGet{Port: 80, TLS: true}}, ""},
		{"HTTP/2", pod.Handler{HTTP: &pod.HTTPGet{Port: 80, HTTP2: true}}, ""},
		{"HTTP, outside", pod.Handler{HTTP: &pod.HTTPGet{Host: "192.0.2.1", Port: 80}}, ""},
		{"a header that cannot be sent", pod.Handler{HTTP: &pod.HTTPGet{Port: 80, Headers: []pod.Header{{Name: "A", Value: "b\nc"}}}}, ""},
		{"a long request", pod.Handler{HTTP: &pod.HTTPGet{Port: 80, Path: "/" + strings.Repeat("a", maxRequest)}}, ""},
		{"gRPC", pod.Handler{GRPC: &pod.GRPC{Port: 80}}, ""},
	} {
		server, _, ok := p.Plain(&test.h)
		if got := server.String(); ok != (test.server != "") || ok && got != test.server {
			t.Errorf("%s: %v %s", test.name, ok, got)
		}
	}
}
