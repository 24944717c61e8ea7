package netns

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func BenchmarkLoopbackUp(b *testing.B) {
	ns := testenv.Namespaces(b, unix.CLONE_NEWNET) + "/ns/net"
	for b.Loop() {
		if err := LoopbackUp(ns); err != nil {
			b.Fatal(err)
		}
	}
}
