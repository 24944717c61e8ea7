package sandbox

import (
	"errors"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/volumes"
)

// CheckOverlay returns an error, with a hint, if root file systems cannot be mounted in the pod's directory:
// then no container could ever start. A success is recorded for the directory's file system until the next
// boot.
func CheckOverlay(dirs store.Dirs, p store.Pod) error {
	mark, err := dirs.OverlayMark()
	if err != nil {
		return err
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := volumes.ProbeOverlay(p.RootfsDir()); err != nil {
		return err
	}
	return store.WriteVolatile(mark, nil)
}
