package ingress

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/nsthread"
	"github.com/podrun/podrun/netns/hostport"
)

// ways measures a plain veth pair and a published port.
func ways(b *testing.B, serve func(c *net.TCPConn), measure func(b *testing.B, w *world, to string) error) {
	b.Run("veth", func(b *testing.B) {
		w := newWorld(b)
		nettest.Serve(b, w.Host, ":8080", serve)
		must(b, measure(b, w, "10.77.0.1:8080"))
	})
	b.Run("in", func(b *testing.B) {
		w := newWorld(b)
		nettest.Serve(b, w.pod, ":80", serve)
		w.publish(b, w.dialer(b, false), hostport.Port{Protocol: "tcp", Number: 8080}, 80)
		must(b, measure(b, w, "10.77.0.1:8080"))
	})
}

// BenchmarkStream measures what comes in, BenchmarkStreamBack what the pod sends back.
func BenchmarkStream(b *testing.B) {
	ways(b, func(c *net.TCPConn) { io.Copy(io.Discard, c) }, func(b *testing.B, w *world, to string) error {
		c := nettest.Connect(b, w.Remote, "tcp", to)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		chunk := make([]byte, 128<<10)
		b.SetBytes(int64(len(chunk)))
		for b.Loop() {
			if _, err := c.Write(chunk); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkStreamBack(b *testing.B) {
	ways(b, func(c *net.TCPConn) {
		for chunk := make([]byte, 128<<10); ; {
			if _, err := c.Write(chunk); err != nil {
				return
			}
		}
	}, func(b *testing.B, w *world, to string) error {
		c := nettest.Connect(b, w.Remote, "tcp", to)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		chunk := make([]byte, 128<<10)
		b.SetBytes(int64(len(chunk)))
		for b.Loop() {
			if _, err := io.ReadFull(c, chunk); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkTurn measures a round trip of one byte, BenchmarkConnection a whole connection.
func BenchmarkTurn(b *testing.B) {
	ways(b, func(c *net.TCPConn) { io.Copy(c, c) }, func(b *testing.B, w *world, to string) error {
		c := nettest.Connect(b, w.Remote, "tcp", to)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		buf := make([]byte, 1)
		for b.Loop() {
			c.Write(buf)
			if _, err := io.ReadFull(c, buf); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkConnection(b *testing.B) {
	ways(b, func(c *net.TCPConn) { c.Write([]byte("x")) }, func(b *testing.B, w *world, to string) error {
		return nsthread.Do(func() error {
			for b.Loop() {
				c, err := net.Dial("tcp", to)
				if err != nil {
					return err
				}
				_, err = io.ReadAll(c)
				c.Close()
				if err != nil {
					return err
				}
			}
			return nil
		}, w.Remote)
	})
}
