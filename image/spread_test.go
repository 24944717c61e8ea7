package image

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLayersAreSpread: ext4 is told that layers do not belong together, and told it only of
// layers; any other file system is left alone.
func TestLayersAreSpread(t *testing.T) {
	s := newStore(t)
	img := load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "d/f", Content: "x"})}}).path())
	var fs unix.Statfs_t
	if err := unix.Statfs(s.dir, &fs); err != nil {
		t.Fatal(err)
	}
	isExt4 := fs.Type == unix.EXT4_SUPER_MAGIC
	for dir, want := range map[string]bool{filepath.Join(s.dir, stagingDir): isExt4, s.dir: false, img.Layers[0]: false} {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil && isExt4 {
			t.Fatal(err)
		}
		if got := err == nil && flags&topDirFlag != 0; got != want {
			t.Errorf("%s: flag T is %v, want %v (ext4: %v)", dir, got, want, isExt4)
		}
	}
}
