package image

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/download"
	"github.com/podrun/podrun/internal/testenv"
)

// shortPatience returns a policy with short waits for tests.
func shortPatience() download.RetryPolicy {
	quick := []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
	return download.RetryPolicy{AnswerTimeout: time.Minute, StallWindow: time.Minute, MinBytes: 1 << 10, BlobWaits: quick, ManifestWaits: quick}
}

// random returns a layer that no compression makes smaller.
func random(t testing.TB, n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return layerTar(t, f{Name: "random", Content: string(b)})
}

// cutter is a registry that counts the bytes it sends of its largest blob, supports ranges and breaks
// connections as configured.
type cutter struct {
	*fake
	blob   string
	sent   atomic.Int64
	ranges atomic.Int64
	cut    func(n int) int // how many of n bytes it sends before it breaks the connection
}

func newCutter(t *testing.T, layers ...[]byte) (*cutter, string) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: layers}))
	c := &cutter{fake: fk, blob: largest(fk.blobs), cut: func(n int) int { return n }}
	fk.edit = c.serve
	return c, repo
}

func (c *cutter) serve(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, c.blob) {
		return false
	}
	b := c.blobs[c.blob]
	var from int
	if n, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && err == nil {
		c.ranges.Add(1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(b)-1, len(b)))
		b = b[from:]
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	n := c.cut(len(b))
	c.sent.Add(int64(n))
	w.Write(b[:n])
	if n < len(b) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler) // the connection is reset
	}
	return true
}

// TestPullIsCut pulls from a registry whose connections break repeatedly: received bytes are not fetched
// again.
func TestPullIsCut(t *testing.T) {
	testenv.NoLeaks(t)
	layer := random(t, 6<<20)
	c, repo := newCutter(t, layer)
	c.cut = func(n int) int { return min(n, 700<<10) }
	s := newStore(t)
	got, err := s.Pull(context.Background(), repo, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, size := c.sent.Load(), int64(len(layer)); n > size*11/10 || c.ranges.Load() < 5 {
		t.Errorf("%d bytes of %d were sent, in %d ranges", n, size, c.ranges.Load())
	}
	if left := merged(t, got.Layers); len(left) != 2 {
		t.Errorf("got %v", left)
	}
	noPartials(t, s)
	http.DefaultClient.CloseIdleConnections()
}

func noPartials(t *testing.T, s *testStore) {
	t.Helper()
	if left, _ := os.ReadDir(filepath.Join(s.Dir, download.PartialDirName)); len(left) > 0 {
		t.Errorf("%d partial files are left", len(left))
	}
}

// TestPullGoesOn stops in the middle: the next pull continues from there, and one that finds damaged data
// starts again.
func TestPullGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, path string)
		most  float64 // times the layer that may be sent in all
	}{
		"as it was":   {func(*testing.T, string) {}, 1.1},
		"zeros in it": {func(t *testing.T, path string) { spoil(t, path, make([]byte, 4096)) }, 2.1},
		"too long":    {func(t *testing.T, path string) { spoil(t, path, make([]byte, 8<<20)) }, 2.1},
		"gone":        {func(t *testing.T, path string) { os.Remove(path) }, 2.1},
		"a link": {func(t *testing.T, path string) {
			os.Remove(path)
			if err := os.Symlink("/etc/hostname", path); err != nil {
				t.Fatal(err)
			}
		}, 2.1},
		"a directory": {func(t *testing.T, path string) {
			os.Remove(path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, 2.1},
	} {
		t.Run(name, func(t *testing.T) {
			layer := random(t, 4<<20)
			c, repo := newCutter(t, layer)
			s := newStore(t)
			var calls atomic.Int64
			c.cut = func(n int) int {
				if calls.Add(1) == 1 {
					return n * 3 / 4
				}
				return 0
			}
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			wantError(t, err, "EOF")
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
			tt.spoil(t, filepath.Join(s.Dir, download.PartialDirName, strings.TrimPrefix(c.blob, "blobs/sha256:")))
			c.cut = func(n int) int { return n }
			if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
				t.Fatal(err)
			}
			if n, size := c.sent.Load(), float64(len(layer)); float64(n) > tt.most*size {
				t.Errorf("%d bytes of %.0f were sent", n, size)
			}
		})
	}
}

func spoil(t *testing.T, path string, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(with, 1<<20); err != nil {
		t.Fatal(err)
	}
}

// TestPullStalls pulls from registries that keep the connection open and send nothing, or almost nothing.
func TestPullStalls(t *testing.T) {
	for name, drip := range map[string][]byte{"silent": nil, "a byte now and then": {0}} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			c, repo := newCutter(t, random(t, 1<<20))
			stop := make(chan struct{})
			c.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, c.blob) {
					return false
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(c.blobs[c.blob])))
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for {
					w.Write(drip)
					w.(http.Flusher).Flush()
					select {
					case <-r.Context().Done():
						return true
					case <-stop:
						return true
					case <-tick.C:
					}
				}
			}
			s := newStore(t)
			s.Retry.StallWindow = 300 * time.Millisecond
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			close(stop)
			wantError(t, err, "has stopped sending")
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// TestPullWithoutPartial has no space for a partial file, from the beginning or from the middle on: the
// layer is fetched without it.
func TestPullWithoutPartial(t *testing.T) {
	layer := random(t, 3<<20)
	for name, prepare := range map[string]func(t *testing.T, s *testStore, c *cutter){
		"from the beginning": func(t *testing.T, s *testStore, _ *cutter) {
			if err := os.WriteFile(filepath.Join(s.Dir, download.PartialDirName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"in the middle": func(_ *testing.T, s *testStore, _ *cutter) { s.MaxPartial = 1 << 20 },
		"cut as well": func(_ *testing.T, s *testStore, c *cutter) {
			s.MaxPartial = 1 << 20
			c.cut = func(n int) int { return min(n, 400<<10) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, repo := newCutter(t, layer)
			s := newStore(t)
			prepare(t, s, c)
			if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
				t.Fatal(err)
			}
			if n := c.sent.Load(); n > int64(len(layer))*11/10 {
				t.Errorf("%d bytes of %d were sent", n, len(layer))
			}
			if name != "from the beginning" {
				noPartials(t, s)
			}
		})
	}
}
