package image

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/containers/image/v5/docker/reference"
)

func TestLoginsFor(t *testing.T) {
	text := `{"auths":{
"https://index.docker.io/v1/":{"username":"hub","password":"p"},
"*.example.com":{"auth":"YWxsOnA="},
"a.example.com/team":{"auth":"dGVhbTpwOnE="},
"host:5000":{"username":"port","password":"p"},
"https://v2.example.org/v2/x":{"identitytoken":"t","username":"token"}}}`
	for image, want := range map[string]string{
		"busybox":                  "hub",
		"docker.io/me/x":           "hub",
		"b.example.com/x":          "all",
		"a.example.com/x":          "all",
		"a.example.com/team":       "team all",
		"a.example.com/team/x":     "team all",
		"a.example.com/teams/x":    "all",
		"a.b.example.com/x":        "",
		"example.com/x":            "",
		"host:5000/x":              "port",
		"host:5001/x":              "",
		"v2.example.org/x/y":       "token",
		"v2.example.org/xy":        "",
		"evil.org/a.example.com/x": "",
	} {
		name, err := reference.ParseNormalizedNamed(image)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, as := range loginsFor(name, [][]byte{[]byte(text), []byte("rubbish")}) {
			got = append(got, as.Username)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
	if err := CheckLogins([]byte(text)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "[]", `{"auths":{"a":{"auth":"c2VjcmV0"}}}`, `{"auths":{"a":{"auth":"!secret"}}}`, `{"a":1}`} {
		if err := CheckLogins([]byte(bad)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestPullWithLogins: those that are for the image are tried one after the other, then
// the user's own; no other registry sees them.
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
	if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{Logins: [][]byte{wrong}}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if _, err := newStore(t).Pull(context.Background(), repo, PullOptions{Logins: [][]byte{wrong, right}}); err != nil {
		t.Error(err)
	}
	if !tried["nobody"] || !tried["me"] || tried["stranger"] {
		t.Errorf("tried %v", tried)
	}
}
