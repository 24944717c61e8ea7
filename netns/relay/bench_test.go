package relay

import (
	"io"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

// BenchmarkStream measures the throughput of a relay between two loopback connections.
func BenchmarkStream(b *testing.B) {
	testenv.LoopbackUp(b)
	client, near := pair(b)
	far, server := pair(b)
	go newLoop(b).ProxyConns(near, far)
	go io.Copy(io.Discard, server)
	chunk := make([]byte, 128<<10)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := client.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn measures a round trip of one byte.
func BenchmarkTurn(b *testing.B) {
	testenv.LoopbackUp(b)
	client, near := pair(b)
	far, server := pair(b)
	go newLoop(b).ProxyConns(near, far)
	go io.Copy(server, server)
	for b.Loop() {
		client.Write([]byte("x"))
		if err := readOne(client); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipe(b *testing.B) {
	for b.Loop() {
		p, err := newPipe()
		if err != nil {
			b.Fatal(err)
		}
		p.close()
	}
}
