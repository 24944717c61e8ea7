package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

// TestPullTLS: an unverified certificate is refused, unless the registry is on this machine.
func TestPullTLS(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, _ := newFake(t, l)
	srv := httptest.NewUnstartedServer(fk)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it reports the client that disconnected
	srv.StartTLS()
	defer srv.Close()
	repo := strings.TrimPrefix(srv.URL, "https://") + "/x"
	yes := true
	_, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{TLSVerify: &yes})
	wantError(t, err, "certificate")
	if !strings.Contains(report.Hint(err), "certs.d") {
		t.Errorf("hint %q", report.Hint(err))
	}
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{}); err != nil {
		t.Error(err)
	}
	_, plain := newFake(t, l)
	_, err = newStore(t).Pull(context.Background(), plain, api.PullOptions{TLSVerify: &yes})
	wantError(t, err, "HTTP")
}

func TestPullAuth(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); ok && user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host, _, _ := strings.Cut(repo, "/")
	auth := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(auth, fmt.Appendf(nil, `{"auths":{%q:{"auth":"bWU6c2VjcmV0"}}}`, host), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{}); !strings.Contains(report.Hint(err), "auth.json") {
		t.Errorf("without credentials: %v, hint %q", err, report.Hint(err))
	}
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{AuthFile: auth}); err != nil {
		t.Error(err)
	}
}

// TestPullMovedTag pulls a tag that stands for another image by now.
func TestPullMovedTag(t *testing.T) {
	first := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "1"})}})
	second := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "2"})}})
	fk, repo := newFake(t, first)
	s := newStore(t)
	old, err := s.Pull(context.Background(), repo, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fk2, _ := newFake(t, second)
	fk.blobs = fk2.blobs
	moved, err := s.Pull(context.Background(), repo, api.PullOptions{})
	if err != nil || moved.ID == old.ID {
		t.Fatalf("%v, id %s before and %s now", err, old.ID, moved.ID)
	}
	if still, err := s.Resolve(old.ID); err != nil || still.Name != "" {
		t.Errorf("the old image: %+v, %v; want it without a name", still, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Errorf("List: %d, %v", len(list), err)
	}
}

// TestPullCancelled stops a pull in the middle of a layer.
func TestPullCancelled(t *testing.T) {
	testenv.NoLeaks(t)
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x", Content: strings.Repeat("x", 1<<20)})}})
	fk, repo := newFake(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	layer := largest(fk.blobs)
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, layer) {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(fk.blobs[layer])))
		w.Write(fk.blobs[layer][:1<<19])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		return true
	}
	s := newStore(t)
	if _, err := s.Pull(ctx, repo, api.PullOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("pull: %v", err)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
	http.DefaultClient.CloseIdleConnections()
}

func largest(blobs map[string][]byte) string {
	best := ""
	for name, b := range blobs {
		if len(b) > len(blobs[best]) && strings.HasPrefix(name, "blobs/") {
			best = name
		}
	}
	return best
}
