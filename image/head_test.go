package image

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// TestHead asks for the digest of a name: by one HEAD of the manifest, which finds the stored image if nothing has
// changed.
func TestHead(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	var mu sync.Mutex
	var methods []string
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			mu.Lock()
			methods = append(methods, r.Method)
			mu.Unlock()
			w.Header().Set("Docker-Content-Digest", l.index.Manifests[0].Digest.String())
		}
		return false
	}
	s := newStore(t)
	digest, found, err := s.Head(context.Background(), repo, api.PullOptions{})
	if err != nil || digest != l.index.Manifests[0].Digest.String() || found.ID != "" {
		t.Errorf("before the pull: %q, %q, %v", digest, found.ID, err)
	}
	pulled, err := s.Pull(context.Background(), repo, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	methods = nil
	if digest, found, err = s.Head(context.Background(), repo, api.PullOptions{}); err != nil || found.ID != pulled.ID {
		t.Errorf("after the pull: %q, %q, %v", digest, found.ID, err)
	}
	if got := strings.Join(methods, " "); got != "HEAD" {
		t.Errorf("requests for manifests: %s", got)
	}
}

// TestHeadOfNothing: a name that the registry does not have is an error with a hint, because HEAD gives no reason.
func TestHeadOfNothing(t *testing.T) {
	_, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	_, _, err := newStore(t).Head(context.Background(), repo+":nosuch", api.PullOptions{})
	if err == nil || report.Hint(err) != "the registry has no image of this name" {
		t.Errorf("%v, hint %q", err, report.Hint(err))
	}
}

// TestHeadFails: the failure of a registry or a network is transient. After any other podrun follow reads the manifests: not
// every registry answers HEAD.
func TestHeadFails(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   bool
	}{
		"HEAD is not allowed":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, false},
		"no such name":         {http.NotFound, false},
		"the registry is busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, true},
		"a cut connection":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	} {
		fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
		fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				tt.answer(w, r)
			}
			return r.Method == http.MethodHead
		}
		_, _, err := newStore(t).Head(context.Background(), repo, api.PullOptions{})
		if err == nil || IsTransient(err) != tt.want {
			t.Errorf("%s: %v, transient %t", name, err, IsTransient(err))
		}
	}
	_, _, err := newStore(t).Head(context.Background(), "127.0.0.1:1/x", api.PullOptions{})
	if err == nil || !IsTransient(err) {
		t.Errorf("nobody listens: %v, transient %t", err, IsTransient(err))
	}
}
