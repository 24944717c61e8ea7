package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
)

// artifact returns an OCI artifact as oras push makes it, of layers with titles.
func artifact(titles []string, contents ...string) img {
	var layers [][]byte
	for _, c := range contents {
		layers = append(layers, []byte(c))
	}
	return img{Name: "artifact", Layers: layers, Edit: func(_ *v1.Image, m *v1.Manifest) {
		m.ArtifactType, m.Config = "application/vnd.example.model", v1.DescriptorEmptyJSON
		for i := range m.Layers {
			m.Layers[i].MediaType, m.Layers[i].Annotations = "application/octet-stream", map[string]string{v1.AnnotationTitle: titles[i]}
		}
	}}
}

// blobsAsked returns how many blobs were fetched since the last call.
func (fk *fake) blobsAsked() int {
	n := 0
	fk.asked.Range(func(path, _ any) bool {
		if strings.Contains(path.(string), "/blobs/") {
			n++
			fk.asked.Delete(path)
		}
		return true
	})
	return n
}

// TestArtifact pulls an artifact: its layers are files, whatever they contain. It is not fetched again, can be
// verified and repaired, and remains an artifact in an archive.
func TestArtifact(t *testing.T) {
	ctx := context.Background()
	titles := []string{"model.bin", "conf/ü.json", "conf/layer.tar", "empty"}
	contents := []string{"weights", "{}", string(gzipped(t, layerTar(t, f{Name: "evil", Content: "x"}))), ""}
	fk, repo := newFake(t, newLayout(t).add(artifact(titles, contents...)))
	want := tree{".": "dir 0755 0:0", "conf": "dir 0755 0:0"}
	for i, title := range titles {
		want[title] = "file 0644 0:0 " + contents[i]
	}
	want["conf/layer.tar"] = fmt.Sprintf("file 0644 0:0 %d bytes", len(contents[2]))
	s := newStore(t)
	got, err := s.Pull(ctx, repo, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, merged(t, got.Layers)); diff != "" {
		t.Errorf("volume (-want +got):\n%s", diff)
	}
	if got.Artifact != "application/vnd.example.model" {
		t.Errorf("artifact %q", got.Artifact)
	}
	if n := fk.blobsAsked(); n != len(titles) {
		t.Errorf("%d blobs were fetched, want one for each of %d layers", n, len(titles))
	}
	again, err := s.Pull(ctx, repo, api.PullOptions{})
	if diff := cmp.Diff(got, again); err != nil || diff != "" || fk.blobsAsked() != 0 {
		t.Errorf("second pull: %v, or blobs were fetched again\n%s", err, diff)
	}
	pinned, err := newStore(t).Pull(ctx, repo+"@"+got.Digest, api.PullOptions{})
	if err != nil || pinned.ID != got.ID || fk.blobsAsked() != len(titles) {
		t.Errorf("pull by digest: %+v, %v", pinned, err)
	}

	if _, err := s.Push(ctx, repo, repo+":2", api.PullOptions{}); err == nil || !strings.Contains(err.Error(), "only container images are pushed") {
		t.Errorf("push: %v", err)
	}
	loaded := load(t, newStore(t), save(t, s, api.SaveOptions{Format: OCIArchive}, repo))
	if loaded.Artifact != got.Artifact || loaded.ID != got.ID {
		t.Errorf("from an archive: %+v", loaded)
	}

	if err := os.WriteFile(layerPath(got, 0, "model.bin"), []byte("Weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := s.Verify(ctx, nil, nil)
	if err != nil || len(list) != 1 || len(list[0].Damage) != 1 {
		t.Fatalf("verify: %+v, %v", list, err)
	}
	if err := s.Repair(ctx, list[0], api.PullOptions{}); err != nil || fk.blobsAsked() != 1 {
		t.Errorf("repair: %v, or it fetched more than the damaged file", err)
	}
}

// TestArtifactRefused pulls artifacts that cannot be mounted. Nothing of them stays in the store.
func TestArtifactRefused(t *testing.T) {
	many := make([]string, records.MaxLayers+1)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	for name, tt := range map[string]struct {
		titles []string
		want   string
	}{
		"absolute":           {[]string{"/etc/passwd"}, `"/etc/passwd", which is not a relative path`},
		"dots":               {[]string{"a/../../b"}, "not a relative path"},
		"directory":          {[]string{"."}, "not a relative path"},
		"empty":              {[]string{""}, "not a relative path"},
		"slash at the end":   {[]string{"a/"}, "not a relative path"},
		"control character":  {[]string{"a\nb"}, `"a\nb"`},
		"zero byte":          {[]string{"a\x00b"}, "not a relative path"},
		"whiteout":           {[]string{"a", "d/.wh.b"}, "delete files of other layers"},
		"twice":              {[]string{"a", "a"}, `two layers have files at "a"`},
		"in a file":          {[]string{"a", "a/b"}, `a file at "a" and a file in it, "a/b"`},
		"file at directory":  {[]string{"a/b/c", "a"}, `two layers have files at "a"`},
		"no layers":          {nil, "it has no layers"},
		"more than overlays": {many, "201 layers are more than the 200"},
		"long name":          {[]string{strings.Repeat("x", 300)}, "file name too long"},
	} {
		t.Run(name, func(t *testing.T) {
			_, repo := newFake(t, newLayout(t).add(artifact(tt.titles, tt.titles...)))
			s := newStore(t)
			_, err := s.Pull(context.Background(), repo, api.PullOptions{})
			wantError(t, err, tt.want)
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
	t.Run("no title", func(t *testing.T) { // a Helm chart
		chart := artifact([]string{""}, "chart")
		edit := chart.Edit
		chart.Edit = func(c *v1.Image, m *v1.Manifest) { edit(c, m); m.Layers[0].Annotations = nil }
		refused(t, newLayout(t).add(chart).path(), "has no annotation org.opencontainers.image.title")
	})
	for name, change := range map[string]func([]byte) []byte{
		"changed": bytes.ToUpper,
		"short":   func(b []byte) []byte { return b[:3] },
		"long":    func(b []byte) []byte { return append(b, 'x') },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t).add(artifact([]string{"a"}, "content"))
			fk, repo := newFake(t, l)
			blob := "blobs/" + l.blob("", []byte("content")).Digest.String()
			fk.blobs[blob] = change(bytes.Clone(fk.blobs[blob]))
			s := newStore(t)
			if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err == nil {
				t.Error("it was pulled")
			}
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

// TestArtifactByPolicy: policy.json decides about artifacts too, before a blob is fetched.
func TestArtifactByPolicy(t *testing.T) {
	fk, repo := newFake(t, newLayout(t).add(artifact([]string{"a"}, "content")))
	s := newStore(t)
	policied(t, s, `{"default":`+reject+`}`)
	_, err := s.Pull(context.Background(), repo, api.PullOptions{})
	wantError(t, err, "rejected by policy")
	if api.Reason(err) != api.SignatureValidationFailed || fk.blobsAsked() > 0 {
		t.Errorf("reason %q, or a blob was fetched", api.Reason(err))
	}
}
