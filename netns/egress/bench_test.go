package egress

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

// BenchmarkConnect is what a pod's network adds to its start, and to its end.
func BenchmarkConnect(b *testing.B) {
	w := newWorld(b)
	ns := testenv.Namespaces(b, unix.CLONE_NEWNET) + "/ns/net"
	for b.Loop() {
		if err := w.router.Attach(ns, w.pool, 1); err != nil {
			b.Fatal(err)
		}
		wires, err := w.router.Wire(w.pool, 1)
		if err != nil {
			b.Fatal(err)
		}
		e, err := Serve(Config{RouterNS: w.path, Pool: w.pool, Slot: 1}, wires)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		e.Close()
		if err := w.router.Detach(1); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
