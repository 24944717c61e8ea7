package sandbox

import (
	"errors"
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/volumes"
)

// CheckOverlay refuses to begin where root file systems cannot be held, with the
// cure: no container of the pod could ever start. A success holds for the file
// system until the machine starts again.
func CheckOverlay(dirs store.Dirs, place store.Pod) error {
	mark, err := dirs.OverlayMark()
	if err != nil {
		return err
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := volumes.ProbeOverlay(place.RootfsDir()); err != nil {
		return err
	}
	return store.WriteVolatile(mark, nil)
}
