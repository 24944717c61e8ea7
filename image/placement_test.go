package image

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/records"
)

// TestLayersAreSpread: only the staging directory, in which layers are made, is marked for ext4 as a top
// directory. Other file systems may support the flag too: an overlay passes it on.
func TestLayersAreSpread(t *testing.T) {
	s := newStore(t)
	img := load(t, s, newLayout(t).add(img{Name: "x", Layers: [][]byte{layerTar(t, f{Name: "d/f", Content: "x"})}}).path())
	var fs unix.Statfs_t
	if err := unix.Statfs(s.Dir, &fs); err != nil {
		t.Fatal(err)
	}
	isExt4 := fs.Type == unix.EXT4_SUPER_MAGIC
	flagged := func(dir string) bool {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil && isExt4 {
			t.Fatal(err)
		}
		return err == nil && flags&0x20000 /* FS_TOPDIR_FL */ != 0
	}
	if staging := filepath.Join(s.Dir, records.StagingDir); isExt4 && !flagged(staging) {
		t.Errorf("%s has not the flag T", staging)
	}
	for _, dir := range []string{s.Dir, img.Layers[0]} {
		if flagged(dir) {
			t.Errorf("%s has the flag T", dir)
		}
	}
}
