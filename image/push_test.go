package image

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/registry"
	"github.com/podrun/podrun/internal/testenv"
)

// dyingRegistry is docker-registry behind a proxy that may end connections in the middle of a layer.
type dyingRegistry struct {
	addr    string
	dying   atomic.Bool
	uploads atomic.Int32 // of blobs
}

func newDyingRegistry(t *testing.T) *dyingRegistry {
	t.Helper()
	d := &dyingRegistry{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: startRegistry(t)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			d.uploads.Add(1)
		}
		if r.Method != http.MethodPatch || !d.dying.Load() {
			proxy.ServeHTTP(w, r)
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, 64<<10)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	t.Cleanup(server.Close)
	d.addr = strings.TrimPrefix(server.URL, "http://")
	return d
}

// TestPushToADyingRegistry: a push that breaks is an error, and the next one sends only what is missing. What
// was pushed is pulled with the same content, and a pulled image is pushed with the same digest.
func TestPushToADyingRegistry(t *testing.T) {
	testenv.NoLeaks(t)
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	small, big := layerTar(t, f{Name: "small", Content: "small"}), layerTar(t, f{Name: "noise", Content: string(noise)})
	s := newStore(t)
	first := load(t, s, newLayout(t).add(img{Name: "web:1", Layers: [][]byte{big, small, big}}).path())
	d := newDyingRegistry(t)
	d.dying.Store(true)
	if name, err := s.Push(context.Background(), "web:1", d.addr+"/web:1", api.PullOptions{}); err == nil || !strings.Contains(err.Error(), "push web:1 to "+d.addr+"/web:1: layer sha256:") {
		t.Fatalf("%q, %v", name, err)
	}
	d.dying.Store(false)
	d.uploads.Store(0)
	var told progressLog
	name, err := s.Push(context.Background(), "web:1", d.addr+"/web:1", api.PullOptions{Progress: told.add})
	if err != nil || told.count(api.Done) != 2 || d.uploads.Load() != 3 { // two layers and the config
		t.Fatalf("%v, %d layers, %d uploads", err, told.count(api.Done), d.uploads.Load())
	}
	other := newStore(t)
	got, err := other.Pull(context.Background(), d.addr+"/web:1", api.PullOptions{})
	if err != nil || got.ID != first.ID || name != d.addr+"/web@"+got.Digest {
		t.Fatalf("%+v, %v; want %s, id %s", got, err, name, first.ID)
	}
	for _, from := range []*testStore{s, other} {
		ref := map[*testStore]string{s: "web:1", other: d.addr + "/web:1"}[from]
		if again, err := from.Push(context.Background(), ref, d.addr+"/web:2", api.PullOptions{}); err != nil || again != name || d.uploads.Load() != 3 {
			t.Errorf("again: %s, %v, %d uploads; want %s", again, err, d.uploads.Load(), name)
		}
	}
}

// TestPushNamesItsTarget: names to which nothing can be pushed.
func TestPushNamesItsTarget(t *testing.T) {
	s := newStore(t)
	i := load(t, s, newLayout(t).add(two(t, "two:1")).path())
	for _, c := range []struct{ ref, to, err string }{
		{i.ID, "", "an image id needs a name"},
		{"two:1", "localhost/two:1", "localhost/two:1 is a name of this machine only"},
		{"two:1", "example.org/two@" + i.Digest, "has a digest"},
		{"two:1", "Two", "repository name must be lowercase"},
		{"none", "example.org/x", "image is not on this machine"},
	} {
		if _, err := s.Push(context.Background(), c.ref, c.to, api.PullOptions{}); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("push %s to %q: %v; want %q", c.ref, c.to, err, c.err)
		}
	}
}

// TestPushSendsNoLoginElsewhere: a registry cannot direct an upload with the login to another address.
func TestPushSendsNoLoginElsewhere(t *testing.T) {
	testenv.NoLeaks(t)
	var stolen atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Store(stolen.Load() || r.Header.Get("Authorization") != "")
		w.WriteHeader(http.StatusAccepted)
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v2/":
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Location", thief.URL+"/upload")
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	s := newStore(t)
	load(t, s, newLayout(t).add(two(t, "two:1")).path())
	o := api.PullOptions{AuthFile: t.TempDir() + "/auth.json"}
	if _, err := registry.Login(context.Background(), api.Account{Registry: addr, User: "me", Password: "secret"}, o); err != nil {
		t.Fatal(err)
	}
	_, err := s.Push(context.Background(), "two:1", addr+"/two:1", o)
	if err == nil || !strings.Contains(err.Error(), "refused to send the login of registry "+addr) || stolen.Load() {
		t.Errorf("%v; the other address has got the login: %v", err, stolen.Load())
	}
	if errors.Is(err, context.Canceled) {
		t.Error("the error has no cause")
	}
}
