package image

import (
	"context"
	"strings"
	"testing"

	"github.com/podrun/podrun/image/api"
)

// TestPin: a pinned name stands for its image also after the name has moved on; ids and names with a digest stay as they are.
func TestPin(t *testing.T) {
	ctx := context.Background()
	fk, repo := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "x"})}}))
	s := newStore(t)
	old, err := s.Pull(ctx, repo, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	by, err := s.Pin(repo, old)
	if err != nil || !strings.HasSuffix(by, ":latest@"+old.Digest) {
		t.Fatalf("%s, %v", by, err)
	}
	other, _ := newFake(t, newLayout(t).add(img{Layers: [][]byte{layerTar(t, f{Name: "y"})}}))
	fk.blobs = other.blobs
	if moved, err := s.Pull(ctx, repo, api.PullOptions{}); err != nil || moved.ID == old.ID {
		t.Fatalf("%s, %v", moved.ID, err)
	}
	if got, err := s.Resolve(by); err != nil || got.ID != old.ID {
		t.Errorf("%s stands for %s, %v", by, got.ID, err)
	}
	if _, err := s.Pin(repo, old); err == nil {
		t.Error("a name that stands for another image was pinned to the old one")
	}
	for _, ref := range []string{by, old.ID} {
		if got, err := s.Pin(ref, old); err != nil || got != ref {
			t.Errorf("%s: %s, %v", ref, got, err)
		}
	}
}
