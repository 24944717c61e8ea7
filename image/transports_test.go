package image

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/ingest"
)

// TestTransports lets skopeo write an image in every form, and loads it from there.
func TestTransports(t *testing.T) {
	here := two(t, "two")
	here.Compress = gzipped
	layout := newLayout(t).add(here).path()
	dir := t.TempDir()
	for transport, place := range map[string]string{
		"oci": "/oci:two:1", "oci-archive": "/oci.tar:two:1", "docker-archive": "/docker.tar:two:1", "dir": "/dir",
	} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			skopeo(t, "copy", "oci:"+layout+":two", transport+":"+dir+place)
			s := newStore(t)
			p, err := api.ParseLocation(transport + ":" + dir + place)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Fetch(context.Background(), p, api.PullOptions{})
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			if diff := cmp.Diff(twoMerged, merged(t, got[0].Layers)); diff != "" {
				t.Errorf("root file system (-want +got):\n%s", diff)
			}
			if transport != "dir" {
				if _, err := s.Resolve("two:1"); err != nil {
					t.Error(err)
				}
				p.Name = "nosuch"
				_, err = s.Fetch(context.Background(), p, api.PullOptions{})
				wantError(t, err, `no image "nosuch" in it`)
				p.Name = "@0"
				if _, err = s.Fetch(context.Background(), p, api.PullOptions{}); err != nil {
					t.Error(err)
				}
				p.Name = "@1"
				_, err = s.Fetch(context.Background(), p, api.PullOptions{})
				wantError(t, err, "no image number 1")
			}
			if load(t, newStore(t), p.Path).ID != got[0].ID {
				t.Error("load gives another image")
			}
			p.Transport, p.Name = map[bool]string{true: "oci", false: "dir"}[transport != "oci"], ""
			_, err = s.Fetch(context.Background(), p, api.PullOptions{})
			wantError(t, err, "but "+transport)
		})
	}
}

// TestHostileDir: a directory's files match their names, or are refused.
func TestHostileDir(t *testing.T) {
	layout := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "x", Content: strings.Repeat("x", 5000)})}}).path()
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, dir string, blobs []string)
		want  string
	}{
		"blob changed": {func(t *testing.T, _ string, blobs []string) { overwrite(t, blobs[0], "x") }, "layer sha256:"},
		"blob missing": {func(_ *testing.T, _ string, blobs []string) { os.Remove(blobs[0]) }, "no such file"},
		"manifest":     {func(t *testing.T, dir string, _ []string) { overwrite(t, filepath.Join(dir, "manifest.json"), "{}") }, "manifest"},
		"manifest huge": {func(t *testing.T, dir string, _ []string) {
			overwrite(t, filepath.Join(dir, "manifest.json"), "{"+strings.Repeat(" ", ingest.MaxJSON)+"}")
		}, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			skopeo(t, "copy", "oci:"+layout+":x", "dir:"+dir)
			blobs, _ := filepath.Glob(filepath.Join(dir, strings.Repeat("?", 64)))
			tt.spoil(t, dir, blobs)
			refused(t, dir, tt.want)
		})
	}
}

// overwrite writes text over the beginning of a file.
func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
