package image

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
)

// TestLayerOfNextSource pulls an image whose mirror has lost a layer: it comes from the registry itself. Its login
// stays there also if it redirects to another port.
func TestLayerOfNextSource(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{random(t, 1<<20)}})
	for name, want := range map[string]string{"served": "", "redirected": "its scheme, host or port is another"} {
		t.Run(name, func(t *testing.T) {
			origin, repo := newFake(t, l)
			mirror, mirrorRepo := newFake(t, l)
			layer := largest(mirror.blobs)
			mirror.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Authorization") != "" {
					t.Errorf("the mirror got the login of the registry")
				}
				if !strings.HasSuffix(r.URL.Path, layer) {
					return false
				}
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"errors":[{"code":"BLOB_UNKNOWN","message":"blob unknown to registry"}]}`)
				return true
			}
			th := newThief(t, false, (&fake{t: t, blobs: origin.blobs, types: origin.types}).ServeHTTP)
			origin.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}
				if want != "" {
					http.Redirect(w, r, th.URL+r.URL.Path, http.StatusTemporaryRedirect)
				}
				return want != ""
			}
			host, _, _ := strings.Cut(repo, "/")
			s := newStore(t)
			configured(t, s, fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", repo, mirrorRepo))
			login := fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":"secret"}}}`, host)
			_, err := s.Pull(context.Background(), repo, api.PullOptions{AuthTexts: [][]byte{login}})
			if want == "" && err != nil {
				t.Error(err)
			}
			if want != "" {
				wantError(t, err, want)
			}
			if _, ok := mirror.asked.Load("/v2/x/" + layer); !ok {
				t.Error("the mirror was not asked for the layer")
			}
			if loot := th.loot(); len(loot) > 0 {
				t.Errorf("the other port got %q", loot)
			}
		})
	}
}
