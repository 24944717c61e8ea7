package image

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/testenv"
)

// TestRecheck: after a restart of the machine the sizes of a layer's files are checked once, before the layer
// is used; a layer that lost some is fetched again silently.
func TestRecheck(t *testing.T) {
	testenv.NoLeaks(t)
	addr := startRegistry(t)
	ref := addr + "/x:1"
	layout := newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "a", Content: "content"}), odd(t)}}).path()
	skopeo(t, "copy", "--dest-tls-verify=false", "oci:"+layout+":x", "docker://"+ref)
	s := newStore(t)
	image, err := s.Pull(context.Background(), ref, api.PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	later, err := openStore(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	later.Boot = "another"
	rechecked := func(n int) bool { return exists(filepath.Join(image.Layers[n], "..", "settled")) }
	if rechecked(0) {
		t.Error("rechecked in the same run of the machine")
	}
	if _, err := later.Resolve(ref); err != nil || !rechecked(0) || !rechecked(1) {
		t.Errorf("rechecked %v, %v: %v", rechecked(0), rechecked(1), err)
	}
	os.Remove(filepath.Join(image.Layers[0], "..", "settled"))
	if err := os.Truncate(layerPath(image, 0, "a"), 0); err != nil {
		t.Fatal(err)
	}
	_, err = later.Resolve(ref)
	wantError(t, err, "a: it has 0 bytes instead of 7")
	if _, err := later.Ensure(context.Background(), ref, Never, api.PullOptions{}); api.Reason(err) != api.ErrImageNeverPull {
		t.Errorf("Ensure(Never): %v", err)
	}
	if _, err := later.Ensure(context.Background(), ref, IfNotPresent, api.PullOptions{}); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(layerPath(image, 0, "a")); string(b) != "content" {
		t.Errorf("a is %q, %v", b, err)
	}
}
