package image

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
)

// TestRedirects: a registry that redirects requests for its blobs causes no leak of a password, and
// neither does a token server.
func TestRedirects(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	var told []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "bWU6c2VjcmV0") || name == "Authorization" || name == "Cookie" {
				told = append(told, name)
			}
		}
		if b, ok := fk.blobs["blobs/"+r.URL.Query().Get("blob")]; ok {
			w.Write(b)
			return
		}
		http.NotFound(w, r)
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, ok := r.BasicAuth(); !ok || user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if blob, ok := strings.CutPrefix(r.URL.Path, "/v2/x/blobs/"); ok {
			w.Header().Set("Set-Cookie", "session=secret")
			http.Redirect(w, r, elsewhere+"/?blob="+blob, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	host, _, _ := strings.Cut(repo, "/")
	login := fmt.Appendf(nil, `{"auths":{%q:{"auth":"bWU6c2VjcmV0"}}}`, host)
	if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{AuthTexts: [][]byte{login}}); err != nil {
		t.Fatal(err)
	}
	if len(told) > 0 {
		t.Errorf("the other host was told %v", told)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestEndlessRegistry sends manifests, configs and errors without an end.
func TestEndlessRegistry(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	for name, tt := range map[string]struct{ path, want string }{
		"manifest": {"/manifests/", "4194304"}, "config": {"/blobs/", "longer than its"}, "ping": {"/v2/", ""}, "error": {"/manifests/", "sends more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, tt.path) {
					return false
				}
				switch name {
				case "ping":
					w.WriteHeader(http.StatusInternalServerError)
				case "error":
					w.WriteHeader(http.StatusNotFound)
				}
				io.Copy(w, io.MultiReader(strings.NewReader(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageManifest+`","x":"`), endlessSpace{}))
				return true
			}
			s := newStore(t)
			s.Retry.AnswerTimeout = 5 * time.Second
			start := time.Now()
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("refused after %v", took)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

type endlessSpace struct{}

func (endlessSpace) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
