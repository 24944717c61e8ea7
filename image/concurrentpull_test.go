package image

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/reexec"
)

// several returns n small layers that depend on name, and the paths of their blobs at the registry.
func several(t *testing.T, n int, name string) (layers [][]byte, paths map[string]bool) {
	t.Helper()
	paths = map[string]bool{}
	for i := range n {
		b := layerTar(t, f{Name: fmt.Sprint(name, i), Content: strings.Repeat("x", 1000)})
		layers = append(layers, b)
		paths["/v2/x/blobs/"+digest.FromBytes(b).String()] = true
	}
	return layers, paths
}

// gate blocks until n callers have arrived.
type gate struct {
	mu   sync.Mutex
	left int
	open chan struct{}
}

func newGate(n int) *gate { return &gate{left: n, open: make(chan struct{})} }

func (g *gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left--; g.left == 0 {
		close(g.open)
	}
}

// pass reports whether the gate opened before ctx ended.
func (g *gate) pass(ctx context.Context) bool {
	select {
	case <-g.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// TestPullOnce: several processes pull one image, and no layer is sent before all of them have requested it.
// Each layer is fetched by one of them.
func TestPullOnce(t *testing.T) {
	layers, paths := several(t, 4, "f")
	fk, repo := newFake(t, newLayout(t).add(img{Layers: layers}))
	const processes = 4
	all := newGate(processes)
	var mu sync.Mutex
	fetched := map[string]int{}
	fk.edit = func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/manifests/latest"):
			all.arrive()
		case paths[r.URL.Path]:
			mu.Lock()
			fetched[r.URL.Path]++
			mu.Unlock()
			return !all.pass(r.Context())
		}
		return false
	}
	s := newStore(t)
	var running []*exec.Cmd
	var said [processes]bytes.Buffer
	for i := range processes {
		cmd := reexec.Command(reexec.Spec{Name: "_pull", Args: []string{s.Dir, repo}})
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said[i].String())
		}
	}
	for path := range paths {
		if n := fetched[path]; n != 1 {
			t.Errorf("%s was fetched %d times", path, n)
		}
	}
	if _, err := s.Resolve(repo); err != nil {
		t.Error(err)
	}
	noPartials(t, s)
}

// TestLayersComeInParallel: a registry sends no layer before all were requested, also for two images that
// one process pulls.
func TestLayersComeInParallel(t *testing.T) {
	s := newStore(t)
	all := newGate(2 * 3)
	var group sync.WaitGroup
	for i := range 2 {
		layers, paths := several(t, 3, fmt.Sprint("image", i, "-"))
		fk, repo := newFake(t, newLayout(t).add(img{Layers: layers}))
		fk.edit = func(_ http.ResponseWriter, r *http.Request) bool {
			if !paths[r.URL.Path] {
				return false
			}
			all.arrive()
			return !all.pass(r.Context())
		}
		group.Go(func() {
			if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	http.DefaultClient.CloseIdleConnections()
}
