package image

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
)

// TestHostileRegistry pulls from registries that send wrong content.
func TestHostileRegistry(t *testing.T) {
	l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x", Content: strings.Repeat("x", 5000)})}})
	l.path()
	var m v1.Manifest
	top := l.index.Manifests[0].Digest
	if err := json.Unmarshal(l.read(top), &m); err != nil {
		t.Fatal(err)
	}
	layer, config := "blobs/"+m.Layers[0].Digest.String(), "blobs/"+m.Config.Digest.String()
	for name, tt := range map[string]struct {
		change func(fk *fake)
		ref    string // after the repository
		want   string
	}{
		"layer changed":    {func(fk *fake) { fk.blobs[layer] = bytes.Replace(fk.blobs[layer], []byte("xxx"), []byte("yyy"), 1) }, "", "instead of sha256:"},
		"layer short":      {func(fk *fake) { fk.blobs[layer] = fk.blobs[layer][:3000] }, "", "EOF"},
		"layer long":       {func(fk *fake) { fk.blobs[layer] = append(fk.blobs[layer], 0) }, "", "longer than its"},
		"layer missing":    {func(fk *fake) { delete(fk.blobs, layer) }, "", "404"},
		"config changed":   {func(fk *fake) { fk.blobs[config] = bytes.ToUpper(fk.blobs[config]) }, "", "instead of sha256:"},
		"config short":     {func(fk *fake) { fk.blobs[config] = fk.blobs[config][:10] }, "", "EOF"},
		"manifest by tag":  {func(fk *fake) { fk.blobs["manifests/latest"] = []byte("{") }, "", "manifest"},
		"manifest changed": {func(fk *fake) { fk.blobs["manifests/"+top.String()] = append(l.read(top), ' ') }, "@" + top.String(), "instead of sha256:"},
		"manifest large": {func(fk *fake) {
			fk.blobs["manifests/latest"] = append(l.read(top), bytes.Repeat([]byte(" "), ingest.MaxJSON)...)
		},
			"", "4194304"},
		"schema 1": {func(fk *fake) {
			fk.blobs["manifests/latest"] = []byte(`{"schemaVersion":1,"name":"x","tag":"latest","architecture":"amd64","fsLayers":[],"history":[],"signatures":[]}`)
			fk.types["manifests/latest"] = "application/vnd.docker.distribution.manifest.v1+prettyjws"
		}, "", "schema 1"},
		"other type": {func(fk *fake) { fk.types["manifests/latest"] = v1.MediaTypeImageIndex }, "", "ambiguous"},
		"unauthorized": {func(fk *fake) {
			fk.edit = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
		}, "", "authentication required"},
	} {
		t.Run(name, func(t *testing.T) {
			fk, repo := newFake(t, l)
			tt.change(fk)
			s := newStore(t)
			_, err := s.Pull(context.Background(), repo+tt.ref, api.PullOptions{})
			wantError(t, err, tt.want)
			if api.Reason(err) != api.ErrImagePull {
				t.Errorf("reason %q, want %s", api.Reason(err), api.ErrImagePull)
			}
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
	t.Run("foreign URLs", func(t *testing.T) { // no other server is contacted
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the manifest's URL was asked") }))
		defer other.Close()
		l := newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}, Edit: func(_ *v1.Image, m *v1.Manifest) {
			m.Layers[0].MediaType = "application/vnd.docker.image.rootfs.foreign.diff.tar"
			m.Layers[0].URLs = []string{other.URL + "/layer"}
		}})
		_, repo := newFake(t, l)
		if _, err := newStore(t).Pull(context.Background(), repo, api.PullOptions{}); err != nil {
			t.Error(err)
		}
	})
}
