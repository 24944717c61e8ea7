package image

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/report"
)

// TestChecksums: every changed byte in a record is detected when the record is read.
func TestChecksums(t *testing.T) {
	s := newStore(t)
	got := load(t, s, newLayout(t).add(img{Name: "x:1", Layers: [][]byte{layerTar(t, f{Name: "x"})}}).path())
	for path, read := range map[string]func(string) error{
		s.ImageFile(idOf(got)):                                func(path string) error { _, err := records.ReadRecord[records.Image](path); return err },
		s.NameFile("docker.io/library/x:1"):                   func(path string) error { _, err := records.ReadRecord[records.Name](path); return err },
		filepath.Join(got.Layers[0], "..", records.LayerFile): func(path string) error { _, err := records.ReadRecord[records.Layer](path); return err },
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := read(path); err != nil {
			t.Error(err)
		}
		for i := len(`{"sum`); i < len(text); i++ { // without these it is an older record
			changed := bytes.Clone(text)
			changed[i] ^= 1 << (i % 7)
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read(path); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("%.10q instead of %.10q at %d: %v", changed[i:], text[i:], i, err)
			}
		}
		old := append([]byte("{"), text[bytes.IndexByte(text, ',')+1:]...)
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := read(path); err != nil {
			t.Errorf("an earlier podrun's: %v", err)
		}
	}
}

// TestRepairLayers: a name's damaged record is restored, without a network if the image is here.
func TestRepairLayers(t *testing.T) {
	l := newLayout(t).add(img{Name: "x:1", Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	fk, repo := newFake(t, l)
	for name, tt := range map[string]struct {
		spoil func(text string) string
		asks  bool   // the registry
		left  bool   // the name exists in the end
		names string // the image's name until then
	}{
		"a digest": {func(s string) string { return strings.Replace(s, `"top":"sha256:`, `"top":"sha255:`, 1) }, false, true, repo + ":latest"},
		"the id":   {func(s string) string { return strings.Replace(s, `"id":"sha256:`, `"id":"sha255:`, 1) }, true, true, repo + ":latest"},
		"the name": {func(s string) string { return strings.Replace(s, `"name":"`, `"nbme":"`, 1) }, false, false, ""},
		"cut":      {func(s string) string { return s[:40] }, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			want, err := s.Pull(context.Background(), repo, api.PullOptions{})
			if err != nil {
				t.Fatal(err)
			}
			file := s.NameFile(repo + ":latest")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.spoil(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Resolve(repo); err == nil {
				t.Error("the damaged name is used")
			}
			found, err := s.Verify(context.Background(), nil, nil)
			if err != nil || len(found) != 2 || len(found[1].Damage) != 1 || strings.Join(found[1].Names, " ") != tt.names {
				t.Fatalf("%+v, %v", found, err)
			}
			fk.asked.Clear()
			if err := s.Repair(context.Background(), found[1], api.PullOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, asked := fk.asked.Load("/v2/x/manifests/latest"); asked != tt.asks {
				t.Errorf("the registry was asked: %v", asked)
			}
			got, err := s.Resolve(repo)
			if (err == nil) != tt.left || tt.left && (got.ID != want.ID || got.Digest != want.Digest || !s.FromRegistry(repo)) {
				t.Errorf("%+v, %v", got, err)
			}
			if found, err = s.Verify(context.Background(), nil, nil); err != nil || len(found) != 1 || len(found[0].Damage) > 0 {
				t.Errorf("after: %+v, %v", found, err)
			}
		})
	}
	t.Run("nobody to ask", func(t *testing.T) {
		s := newStore(t)
		rec := records.Name{Header: records.Header{Version: records.RecordVersion}, Name: "localhost:1/y:latest", ID: "sha255:1"}
		if err := records.WriteRecord(s.NameFile(rec.Name), rec); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(s.NameFile(rec.Name))
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, s.NameFile(rec.Name), strings.Replace(string(text), "sha255", "sha254", 1))
		found, err := s.Verify(context.Background(), nil, nil)
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		err = s.Repair(context.Background(), found[0], api.PullOptions{})
		wantError(t, err, "repair name localhost:1/y:latest")
		if !strings.Contains(report.Hint(err), "podrun image load") || s.ReadDamagedName(s.NameFile(rec.Name)) == nil {
			t.Errorf("hint %q, or the record is gone", report.Hint(err))
		}
	})
}

// TestOrigins: the name alone decides whether a registry is asked, even if the same image has a name of
// another origin too; and an image that cannot be pulled again by all of its names is not removed to free
// space.
func TestOrigins(t *testing.T) {
	l := newLayout(t).add(img{Name: "archived:1", Layers: [][]byte{layerTar(t, f{Name: "x"})}})
	_, repo := newFake(t, l)
	s := newStore(t)
	check := func(when string, pulled bool, registry map[string]bool) {
		t.Helper()
		for name, want := range registry {
			if got := s.FromRegistry(name); got != want {
				t.Errorf("%s: %s is asked for at a registry: %v", when, name, got)
			}
		}
		if list, err := s.List(); err != nil || len(list) != 1 || list[0].Pulled != pulled {
			t.Errorf("%s: %+v, %v", when, list, err)
		}
		if d, err := s.Inspect(repo); err != nil || d.Pulled != pulled {
			t.Errorf("%s: %+v, %v", when, d, err)
		}
	}
	if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	check("pulled", true, map[string]bool{repo: true, "never/seen": true})
	load(t, s, l.path())
	check("loaded too", false, map[string]bool{repo: true, "archived:1": false})
	if _, err := s.Pull(context.Background(), repo, api.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	check("pulled again", false, map[string]bool{repo: true, "archived:1": false})
	if err := s.Remove("archived:1", RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	check("with one name", true, map[string]bool{repo: true})
	if err := s.Tag(repo, "mine:1"); err != nil {
		t.Fatal(err)
	}
	check("tagged", false, map[string]bool{repo: true, "mine:1": false})
	if err := s.Tag("mine:1", repo); err != nil { // as an update does
		t.Fatal(err)
	}
	check("tagged back", false, map[string]bool{repo: true, "mine:1": false})
}
