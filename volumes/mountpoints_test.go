package volumes

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
)

func layerOf(t *testing.T, dir string, dirs, files []string) string {
	t.Helper()
	layer, err := MountPointsLayer(dir, dirs, files)
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func TestMountPointsLayer(t *testing.T) {
	testenv.NoLeaks(t)
	defer unix.Umask(unix.Umask(0o077)) // only directories are visible, and a user of the container enters them
	dir := filepath.Join(t.TempDir(), "mountpoints")
	layers := make([]string, 32)
	var all sync.WaitGroup
	for i := range layers {
		all.Go(func() { layers[i] = layerOf(t, dir, []string{"/proc", "/var/run/x"}, []string{"/etc/hosts"}) })
	}
	all.Wait()
	if len(slices.Compact(layers)) != 1 {
		t.Fatalf("one set has the layers %v", layers)
	}
	var found []string
	must(t, filepath.WalkDir(layers[0], func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(layers[0], path)
		info, err := e.Info()
		found = append(found, info.Mode().String()+" "+name)
		return err
	}))
	want := []string{"drwxr-xr-x .", "drwxr-xr-x etc", "-rw------- etc/hosts", "drwxr-xr-x proc", "drwxr-xr-x var", "drwxr-xr-x var/run", "drwxr-xr-x var/run/x"}
	if !slices.Equal(found, want) {
		t.Errorf("the layer has\n%q, want\n%q", found, want)
	}
	if other := layerOf(t, dir, []string{"/proc"}, []string{"/etc/hosts"}); other == layers[0] {
		t.Error("two sets have the same layer")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// What a process has left that was killed is completed.
func TestMountPointsLayerAfterAKill(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	layer := layerOf(t, dir, []string{"/proc"}, []string{"/etc/hosts"})
	must(t, os.RemoveAll(filepath.Join(layer, "etc")))
	must(t, os.Rename(layer, layer+".new"))
	wantFile(t, filepath.Join(layerOf(t, dir, []string{"/proc"}, []string{"/etc/hosts"}), "etc", "hosts"), "")
}

func TestMountPointsCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	write(t, dir, "")
	if layer, err := MountPointsLayer(dir, []string{"/proc"}, nil); err == nil {
		t.Errorf("layer %s below a file", layer)
	}
}
