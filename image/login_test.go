package image

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
)

// TestPullWithLogins: the logins for the image are tried one after the other, then the user's own; no other
// registry receives them.
func TestPullWithLogins(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	tried := map[string]bool{}
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		if ok {
			tried[user] = true
		}
		if user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host, path, _ := strings.Cut(repo, "/")
	path, _, _ = strings.Cut(path, ":")
	wrong := fmt.Appendf(nil, `{"auths":{%q:{"username":"nobody","password":"x"},"other.example":{"username":"stranger","password":"x"}}}`, host+"/"+path)
	right := fmt.Appendf(nil, `{"auths":{%q:{"username":"me","password":"secret"}}}`, host)
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{AuthTexts: [][]byte{wrong}}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{AuthTexts: [][]byte{wrong, right}}); err != nil {
		t.Error(err)
	}
	if !tried["nobody"] || !tried["me"] || tried["stranger"] {
		t.Errorf("tried %v", tried)
	}
}
