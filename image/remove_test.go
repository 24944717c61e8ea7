package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// shared loads images a (base, a) and b (base, b); b also as c.
func shared(t *testing.T) (s *testStore, a, b pod.Image) {
	t.Helper()
	base := layerTar(t, f{Name: "base", UID: 1000, GID: 1000}, f{Name: "shut/", Mode: 0o001, UID: 33}, f{Name: "shut/x", UID: 33})
	s = newStore(t)
	a = load(t, s, newLayout(t).add(img{Name: "a:1", Layers: [][]byte{base, layerTar(t, f{Name: "a"})}}).path())
	b = load(t, s, newLayout(t).add(img{Name: "b:1", Layers: [][]byte{base, layerTar(t, f{Name: "b"})}}).path())
	load(t, s, newLayout(t).add(img{Name: "c:1", Layers: [][]byte{base, layerTar(t, f{Name: "b"})}}).path())
	return s, a, b
}

func TestRemove(t *testing.T) {
	testenv.NoLeaks(t)
	s, a, b := shared(t)
	if err := s.Remove("a:1", RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("a:1"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("Resolve(a:1): %v", err)
	}
	if exists(a.Layers[1]) || !exists(a.Layers[0]) {
		t.Error("want a's own layer gone and the shared one kept")
	}
	err := s.Remove(b.ID, RemoveOptions{})
	wantError(t, err, "several names: docker.io/library/b:1, docker.io/library/c:1")
	for _, name := range []string{"c:1", strings.TrimPrefix(b.ID, "sha256:")[:6]} {
		if _, err := s.Resolve("b:1"); err != nil {
			t.Error(err)
		}
		if err := s.Remove(name, RemoveOptions{}); err != nil {
			t.Error(err)
		}
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
	for _, name := range []string{"b:1", b.ID, "beef"} {
		if err := s.Remove(name, RemoveOptions{}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("Remove(%s): %v, want ErrNotFound", name, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestRemoveKeepsWhatPodsUse(t *testing.T) {
	s, a, _ := shared(t)
	inUse := func(layer string) bool { return slices.Contains(a.Layers, layer) }
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		if err := s.Remove(name, RemoveOptions{InUse: inUse}); err != nil {
			t.Fatal(err)
		}
	}
	for _, layer := range a.Layers {
		if !exists(layer) {
			t.Errorf("%s is gone", layer)
		}
	}
	if n := len(content(t, s)); n != len(a.Layers) {
		t.Errorf("left in the store: %v", content(t, s))
	}
	load(t, s, newLayout(t).add(img{Name: "d:1", Layers: [][]byte{layerTar(t, f{Name: "d"})}}).path())
	if err := s.Remove("d:1", RemoveOptions{}); err != nil { // the pod is gone by now
		t.Fatal(err)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}

func TestRemoveWhileHeld(t *testing.T) {
	s, a, _ := shared(t)
	hold, err := s.Lease()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("a:1", RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	if !exists(a.Layers[1]) {
		t.Error("a layer was freed while the store was held")
	}
	hold.Close()
	if err := s.Remove("c:1", RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	if exists(a.Layers[1]) {
		t.Error("the next Remove did not free the layer")
	}
}

func TestRemoveAmbiguous(t *testing.T) {
	s := newStore(t)
	byStart := map[string]string{}
	for i := range 2000 { // two ids that begin alike, written as records without layers
		id := hexOf(i)
		if other, ok := byStart[id[:4]]; ok {
			for _, id := range []string{id, other} {
				if err := os.WriteFile(filepath.Join(s.Dir, records.ImagesDir, id+".json"), []byte(`{"version":1}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wantError(t, s.Remove(id[:4], RemoveOptions{}), "ambiguous: 2 images match")
			return
		}
		byStart[id[:4]] = id
	}
	t.Fatal("no two ids begin alike")
}

// TestDamagedRecords garbles and truncates records: the rest of the store works, and adding the image again
// repairs it.
func TestDamagedRecords(t *testing.T) {
	for _, dir := range []string{records.ImagesDir, records.NamesDir, records.LayersDir} {
		t.Run(dir, func(t *testing.T) {
			s, a, _ := shared(t)
			pattern := filepath.Join(s.Dir, dir, "*.json")
			victim := s.ImageFile(idOf(a))
			switch dir {
			case records.NamesDir:
				victim = s.NameFile(a.Name)
			case records.LayersDir:
				pattern = filepath.Join(s.Dir, dir, "*", records.LayerFile)
				victim = filepath.Join(filepath.Dir(a.Layers[1]), records.LayerFile)
			}
			before, err := filepath.Glob(pattern)
			if err != nil || !slices.Contains(before, victim) {
				t.Fatalf("%v: %s is not in %v", err, victim, before)
			}
			for _, garbage := range []string{"", "{", "\x00\x00\x00", `{"version":99}`} {
				if err := os.WriteFile(victim, []byte(garbage), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Resolve("a:1"); err == nil {
					t.Error("an image with a damaged record was found")
				}
				if _, err := s.Resolve("b:1"); err != nil {
					t.Errorf("another image suffers: %v", err)
				}
				if list, err := s.List(); err == nil || len(list) == 0 {
					t.Errorf("List: %d images, %v; want the whole ones and an error", len(list), err)
				}
				base := layerTar(t, f{Name: "base", UID: 1000, GID: 1000}, f{Name: "shut/", Mode: 0o001, UID: 33}, f{Name: "shut/x", UID: 33})
				again := load(t, s, newLayout(t).add(img{Name: "a:1", Layers: [][]byte{base, layerTar(t, f{Name: "a"})}}).path())
				if again.ID != a.ID {
					t.Errorf("got %s, want %s", again.ID, a.ID)
				}
				if got, err := s.Resolve("a:1"); err != nil || len(got.Layers) != 2 {
					t.Errorf("after loading it again: %+v, %v", got, err)
				}
			}
		})
	}
}

func TestList(t *testing.T) {
	s, _, b := shared(t)
	list, err := s.List()
	if err != nil || len(list) != 2 {
		t.Fatalf("List: %d images, %v", len(list), err)
	}
	got := list[0]
	if got.ID != b.ID || !slices.Equal(got.Names, []string{"docker.io/library/b:1", "docker.io/library/c:1"}) ||
		got.Layers != 2 || got.SharedLayers != 1 || got.OS != "linux" || got.Added.IsZero() {
		t.Errorf("%+v", got)
	}
}

// TestOpenKeepsOthersOut: a layer may hold set-id files of the user's ids.
func TestOpenKeepsOthersOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestLoadEmptyPath(t *testing.T) {
	_, err := newStore(t).Load(context.Background(), "")
	wantError(t, err, "no such file")
}
