package image

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/testenv"
)

func namesOf(t *testing.T, s *testStore) []string {
	t.Helper()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Names...)
		if len(i.Names) == 0 {
			names = append(names, "<none>")
		}
	}
	slices.Sort(names)
	return names
}

func using(names ...string) Uses {
	return Uses{Image: func(_ string, have []string) bool {
		return slices.ContainsFunc(have, func(n string) bool { return slices.Contains(names, n) })
	}}
}

func TestPrune(t *testing.T) {
	testenv.NoLeaks(t)
	s, a, _ := shared(t)
	load(t, s, newLayout(t).add(img{Name: "a:1", Layers: [][]byte{layerTar(t, f{Name: "new", Content: "n"})}}).path()) // the name points to another image now
	p, err := s.Prune(PruneOptions{})
	if err != nil || len(p.Images) != 1 || p.Images[0].ID != a.ID || exists(a.Layers[1]) || !exists(a.Layers[0]) {
		t.Errorf("prune: %+v, %v", p, err)
	}
	if p, err := s.Prune(PruneOptions{All: true, Before: time.Now().Add(-time.Hour)}); err != nil || len(p.Images) != 0 {
		t.Errorf("prune of what is older than an hour: %+v, %v", p, err)
	}
	p, err = s.Prune(PruneOptions{All: true, Uses: using("docker.io/library/c:1")})
	if diff := cmp.Diff([]string{"docker.io/library/b:1", "docker.io/library/c:1"}, namesOf(t, s)); err != nil || len(p.Images) != 1 || p.Bytes != 1 || diff != "" {
		t.Errorf("prune -a: %+v, %v\n%s", p, err, diff)
	}
	if p, err := s.Prune(PruneOptions{All: true}); err != nil || len(p.Images) != 1 || len(content(t, s)) > 0 {
		t.Errorf("prune -a of the rest: %+v, %v, left: %v", p, err, content(t, s))
	}
}

// TestPruneSpares: while another process adds images, layers stay, and the next run frees them.
func TestPruneSpares(t *testing.T) {
	s, a, _ := shared(t)
	hold, err := s.Lease()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(PruneOptions{All: true}); err != nil || !exists(a.Layers[0]) {
		t.Errorf("prune while images are used: %v", err)
	}
	hold.Close()
	if _, err := s.Prune(PruneOptions{All: true}); err != nil || exists(a.Layers[0]) {
		t.Errorf("prune after: %v", err)
	}
}

// TestCollect: the least recently used images are removed, until the disk is 80 % full.
func TestCollect(t *testing.T) {
	testenv.NoLeaks(t)
	s := newStore(t)
	old := time.Now().Add(-3 * time.Hour)
	for i, name := range []string{"oldest:1", "used:1", "older:1", "loaded:1", "newer:1", "young:1"} {
		image := load(t, s, newLayout(t).add(img{Name: name, Layers: [][]byte{layerTar(t, f{Name: name, Content: name})}}).path())
		rec, err := s.ReadImage(idOf(image))
		if err != nil {
			t.Fatal(err)
		}
		rec.Pulled = name != "loaded:1"
		if rec.Pulled {
			n, err := s.ReadName("docker.io/library/" + name)
			if err != nil {
				t.Fatal(err)
			}
			n.Origin = records.OriginRegistry
			if err := records.WriteRecord(s.NameFile(n.Name), n); err != nil {
				t.Fatal(err)
			}
		}
		if name != "young:1" {
			rec.Added = old
		}
		if err := records.WriteRecord(s.ImageFile(rec.ID), rec); err != nil {
			t.Fatal(err)
		}
		when := old.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(s.ImageFile(rec.ID), when, when); err != nil {
			t.Fatal(err)
		}
	}
	free := int64(16)
	s.disk = func(string) (int64, int64, error) { // an image takes two of a hundred
		return 100, free + 2*int64(6-len(namesOf(t, s))), nil
	}
	uses := func() (Uses, error) { return using("docker.io/library/used:1"), nil }
	if p, err := s.GarbageCollect(func() (Uses, error) { t.Error("asked"); return Uses{}, nil }); err != nil || len(p.Images) != 0 {
		t.Errorf("with 84 %% in use: %+v, %v", p, err)
	}
	free = 15
	p, err := s.GarbageCollect(uses)
	if diff := cmp.Diff([]string{"loaded:1", "used:1", "young:1"}, familiar(namesOf(t, s))); err != nil || len(p.Images) != 3 || p.Bytes != int64(len("oldest:1older:1newer:1")) || diff != "" {
		t.Errorf("with 85 %% in use: %+v, %v\n%s", p, err, diff)
	}
	if _, err := s.Ensure(context.Background(), "used:1", Never, api.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if i := slices.IndexFunc(list, func(i Info) bool { return i.Names[0] == "docker.io/library/used:1" }); err != nil || time.Since(list[i].Used) > time.Minute {
		t.Errorf("its use is not known: %v, %v", list, err)
	}
	for _, i := range list {
		if err := os.Chtimes(s.ImageFile(digest.Digest(i.ID)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	free = 90
	if p, err := s.RemoveUnused(uses); err != nil || len(p.Images) != 0 {
		t.Errorf("used images: %+v, %v", p, err)
	}
	p, err = s.RemoveUnused(func() (Uses, error) { return Uses{}, nil })
	if diff := cmp.Diff([]string{"loaded:1", "young:1"}, familiar(namesOf(t, s))); err != nil || len(p.Images) != 1 || diff != "" {
		t.Errorf("unused images of an empty disk: %+v, %v\n%s", p, err, diff)
	}
}

func familiar(names []string) []string {
	for i := range names {
		names[i] = names[i][len("docker.io/library/"):]
	}
	return names
}
