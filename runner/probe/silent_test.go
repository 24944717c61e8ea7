package probe

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
)

// TestNoConnectionStays: a server that accepts connections, and never answers or closes them, cannot make
// the prober keep them open.
func TestNoConnectionStays(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() {
				io.Copy(io.Discard, conn) // until the client closes it
				conn.Close()
			})
		}
	}()
	port := portOf(t, l.Addr().String())
	for _, h := range []pod.Handler{
		{HTTP: &pod.HTTPGet{Port: port, Path: "/"}},
		{HTTP: &pod.HTTPGet{Port: port, Path: "/", TLS: true}},
		{HTTP: &pod.HTTPGet{Port: port, Path: "/", HTTP2: true}},
		{GRPC: &pod.GRPC{Port: port}},
		{GRPC: &pod.GRPC{Port: port, TLS: true}},
		{TCP: &pod.TCPSocket{Port: port}},
	} {
		within := 100 * time.Millisecond
		if h.TCP != nil { // an accepted connection is a success
			within = time.Minute
		}
		outcome, message := local().Run(t.Context(), &h, within)
		if (outcome == lifecycle.Success) != (h.TCP != nil) {
			t.Errorf("%+v: %s %s", h, outcome, message)
		}
		gone := make(chan struct{})
		go func() { held.Wait(); close(gone) }()
		select {
		case <-gone:
		case <-time.After(time.Minute):
			t.Fatalf("%+v %+v: its connection stays", h.HTTP, h.GRPC)
		}
	}
	l.Close()
	<-serving
}
