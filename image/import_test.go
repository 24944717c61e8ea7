package image

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/testenv"
)

func TestImport(t *testing.T) {
	testenv.NoLeaks(t)
	rootfs := layerTar(t, f{Name: "./", Mode: 0o755}, f{Name: "./bin/"}, f{Name: "./bin/sh", Content: "sh", Mode: 0o755},
		f{Name: "./dev/"}, f{Name: "./dev/null", Type: '3', Dev: 1, Mode: 0o666})
	want := tree{".": "dir 0755 0:0", "bin": "dir 0755 0:0", "bin/sh": "file 0755 0:0 sh", "dev": "dir 0755 0:0"}
	s := newStore(t)
	var first pod.Image
	for i, compress := range []func(testing.TB, []byte) []byte{nil, gzipped, zstandard} {
		b := rootfs
		if compress != nil {
			b = compress(t, b)
		}
		path := filepath.Join(t.TempDir(), "rootfs")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := s.Import(context.Background(), path, "base")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got
			if diff := cmp.Diff(want, merged(t, got.Layers)); diff != "" {
				t.Error(diff)
			}
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("the same file made another image:\n%s", diff)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Names[0] != "docker.io/library/base:latest" || list[0].Layers != 1 {
		t.Errorf("List = %+v, %v", list, err)
	}
}

func TestImportRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		content []byte
		image   string
		want    string
	}{
		"empty":   {layerTar(t), "x", "no files in it"},
		"nothing": {nil, "x", "no files in it"},
		"text":    {[]byte("this is not a tar file, however long it is. " + string(make([]byte, 600))), "x", "it is not a tar archive"},
		"xz":      {[]byte("\xfd7zXZ\x00\x00"), "x", "xz compression"},
		"cut off": {layerTar(t, f{Name: "x", Content: string(make([]byte, 5000))})[:3000], "x", "cut off"},
		"name":    {layerTar(t, f{Name: "x"}), "Upper", "Upper"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rootfs")
			if err := os.WriteFile(path, tt.content, 0o644); err != nil {
				t.Fatal(err)
			}
			s := newStore(t)
			_, err := s.Import(context.Background(), path, tt.image)
			wantError(t, err, tt.want)
			if left := content(t, s); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

func TestImportOfADirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := newStore(t).Import(context.Background(), dir, "base")
	if want := "tar c -C " + dir + " . | podrun image import - base"; report.Hint(err) != want {
		t.Errorf("hint %q of %v, want %q", report.Hint(err), err, want)
	}
}
