package probe

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// TestNoConnectionStays: a server that takes connections, and never says anything nor
// closes one, cannot make whoever asks it keep them.
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
				io.Copy(io.Discard, conn) // to the end that the other side makes
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
		if h.TCP != nil { // that is enough for it
			within = time.Minute
		}
		outcome, message := local().Ask(t.Context(), &h, within)
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
