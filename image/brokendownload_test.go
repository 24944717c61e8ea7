package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

// pullEntry runs in another podrun process: "_pull DIR IMAGE [memory]".
func pullEntry(args []string) int {
	limitMemory()
	s, err := openStore(args[0])
	if err == nil {
		_, err = s.Pull(context.Background(), args[1], api.PullOptions{})
	}
	if len(args) > 2 {
		err = errors.Join(err, printMemory(), printChildren())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// proxy forwards connections to a registry, counts the returned bytes, and cuts connections after the number
// of bytes that cut returns.
type proxy struct {
	addr string
	came atomic.Int64
}

func startProxy(t *testing.T, to string, cut func() int64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.hand(c, to, cut()) })
		}
	})
	return p
}

func (p *proxy) hand(c net.Conn, to string, most int64) {
	defer c.Close()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		io.Copy(up, c)
		up.(*net.TCPConn).CloseWrite()
	}()
	c.(*net.TCPConn).SetWriteBuffer(16 << 10) // bytes in this buffer have not arrived
	n, _ := io.Copy(counting{c, &p.came}, io.LimitReader(up, most))
	if n == most {
		c.(*net.TCPConn).SetLinger(0) // a reset, not an end
	}
}

// counting counts the written bytes.
type counting struct {
	io.Writer
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// bigImage makes an image and pushes it to a registry with skopeo: layers of random bytes in some files.
func bigImage(t testing.TB, addr string, layers, size int, compress func(testing.TB, []byte) []byte) (ref string, bytes int64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	var tars [][]byte
	for l := range layers {
		var entries []f
		for i := range 8 {
			content := make([]byte, size/8)
			for j := range content {
				content[j] = byte(rnd.Uint32())
			}
			entries = append(entries, f{Name: fmt.Sprintf("l%d/f%d", l, i), Content: string(content)})
		}
		tars = append(tars, layerTar(t, entries...))
	}
	layout := newLayout(t).add(img{Name: "big", Layers: tars, Compress: compress})
	blobs, err := filepath.Glob(filepath.Join(layout.path(), "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		st, err := os.Stat(b)
		if err != nil {
			t.Fatal(err)
		}
		bytes += st.Size()
	}
	skopeo(t, "copy", "--dest-tls-verify=false", "oci:"+layout.dir+":big", "docker://"+addr+"/big")
	return addr + "/big", bytes
}

// TestPullThroughACuttingProxy pulls from a real registry through a proxy that resets connections at random
// offsets: at least 90 % of the received bytes are not fetched again.
func TestPullThroughACuttingProxy(t *testing.T) {
	addr := startRegistry(t)
	_, size := bigImage(t, addr, 4, 4<<20, gzipped)
	rnd := rand.New(rand.NewPCG(5, 6))
	var mu sync.Mutex
	p := startProxy(t, addr, func() int64 {
		mu.Lock()
		defer mu.Unlock()
		return 100<<10 + rnd.Int64N(2<<20)
	})
	s := newStore(t)
	if _, err := s.Pull(context.Background(), p.addr+"/big", api.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if came := p.came.Load(); came > size*11/10 {
		t.Errorf("%d bytes came for an image of %d", came, size)
	}
	sameAsStraight(t, s, p.addr+"/big", addr+"/big")
	http.DefaultClient.CloseIdleConnections()
}

// sameAsStraight compares an image with one from an uninterrupted pull.
func sameAsStraight(t *testing.T, s *testStore, ref, straight string) {
	t.Helper()
	got, err := s.Resolve(ref)
	if err != nil {
		t.Fatal(err)
	}
	want, err := newStore(t).Pull(context.Background(), straight, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(merged(t, want.Layers), merged(t, got.Layers)); diff != "" {
		t.Errorf("root file system (-straight +got):\n%s", diff)
	}
}

// TestPullIsKilled kills pulls with SIGKILL at random moments: nothing is visible, and the next pull
// continues from there.
func TestPullIsKilled(t *testing.T) {
	testenv.NoLeaks(t)
	addr := startRegistry(t)
	_, size := bigImage(t, addr, 3, 4<<20, zstandard)
	p := startProxy(t, addr, func() int64 { return 1 << 40 })
	s := newStore(t)
	rnd := rand.New(rand.NewPCG(7, 8))
	const kills = 4
	for i := range kills {
		cmd := reexec.Command(reexec.Spec{Name: "_pull", Args: []string{s.Dir, p.addr + "/big"}})
		before, wait := p.came.Load(), rnd.Int64N(size/kills)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		await(t, "some bytes to come", func() bool {
			return len(ended) > 0 || partialBytes(t, s) >= wait+int64(i)*size/kills || p.came.Load()-before > size
		})
		cmd.Process.Signal(syscall.SIGKILL)
		<-ended
	}
	if list, err := s.List(); err != nil || len(list) > 1 {
		t.Errorf("List: %v, %v", list, err)
	}
	if _, err := s.Pull(context.Background(), p.addr+"/big", api.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	// The bytes in the sockets of a killed pull are lost, four times.
	if came := p.came.Load(); came > size*12/10 {
		t.Errorf("%d bytes came for an image of %d, in spite of %d kills", came, size, kills)
	}
	sameAsStraight(t, s, p.addr+"/big", addr+"/big")
	noPartials(t, s)
	http.DefaultClient.CloseIdleConnections()
}

// TestPullEndedLate: a process that stored a layer may be killed before it removes the partial file. The
// next pull, which finds the layer, removes it.
func TestPullEndedLate(t *testing.T) {
	testenv.NoLeaks(t)
	c, repo := newCutter(t, random(t, 1<<20))
	c.cut = func(n int) int { return n }
	s := newStore(t)
	pull := func() {
		t.Helper()
		if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pull()
	left := filepath.Join(s.Dir, download.PartialDirName, strings.TrimPrefix(c.blob, "blobs/sha256:"))
	if err := os.WriteFile(left, []byte("all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	pull()
	noPartials(t, s)
	http.DefaultClient.CloseIdleConnections()
}

// partialBytes returns how much of an image was received: partial files and whole layers.
func partialBytes(t *testing.T, s *testStore) (n int64) {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Join(s.Dir, download.PartialDirName))
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			n += st.Size()
		}
	}
	layers, _ := os.ReadDir(filepath.Join(s.Dir, records.LayersDir))
	return n + int64(len(layers))*(4<<20)
}
