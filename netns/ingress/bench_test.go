package ingress

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/nettest"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/netns"
	"github.com/podrun/podrun/netns/hostport"
)

// ways are the plain pair of devices, a published port, and that of the program pasta.
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
	b.Run("pasta", func(b *testing.B) {
		w := newWorld(b)
		nettest.Serve(b, w.pod, ":80", serve)
		w.pasta(b)
		if err := measure(b, w, "10.77.0.1:8080"); err != nil {
			b.Logf("pasta broke the connection: %v", err)
		}
	})
}

// pasta has the program publish the pod's port 80 as 8080 of the host.
func (w *world) pasta(b *testing.B) {
	b.Helper()
	testenv.Need(b, func() error { _, err := exec.LookPath("pasta"); return err })
	dir := b.TempDir()
	ns := filepath.Join(dir, "net")
	must(b, os.WriteFile(ns, nil, 0o600))
	must(b, unix.Mount(w.pod, ns, "", unix.MS_BIND, ""))
	b.Cleanup(func() { unix.Unmount(ns, unix.MNT_DETACH) })
	nettest.Do(b, w.Host, func() error { return exec.Command("ip", "route", "add", "default", "via", nettest.RemoteAddr).Run() })
	var cmd *exec.Cmd
	must(b, netns.Do(w.Host, func() error {
		cmd = exec.Command("pasta", "-f", "--netns-only", "--netns", ns, "--no-netns-quit", "--quiet", "--runas", "0", "--config-net", "-I", "tap0",
			"-t", "8080:80", "-u", "none", "-T", "none", "-U", "none")
		return cmd.Start()
	}))
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := nettest.Dial(w.Remote, "tcp", "10.77.0.1:8080")
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("pasta does not serve: %v", err)
		}
	}
}

// BenchmarkStream is what comes in, BenchmarkStreamBack what the pod answers with.
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

// BenchmarkTurn is one byte there and back, BenchmarkConnection a whole connection.
func BenchmarkTurn(b *testing.B) {
	ways(b, func(c *net.TCPConn) { io.Copy(c, c) }, func(b *testing.B, w *world, to string) error {
		c := nettest.Connect(b, w.Remote, "tcp", to)
		c.SetDeadline(time.Now().Add(10 * time.Second))
		one := make([]byte, 1)
		for b.Loop() {
			c.Write(one)
			if _, err := io.ReadFull(c, one); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkConnection(b *testing.B) {
	ways(b, func(c *net.TCPConn) { c.Write([]byte("x")) }, func(b *testing.B, w *world, to string) error {
		return netns.Do(w.Remote, func() error {
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
		})
	})
}
