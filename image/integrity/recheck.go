package integrity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/image/layer"
	"github.com/podrun/podrun/image/records"
	"github.com/podrun/podrun/internal/store"
)

// A layer is made durable before it gets its name, so a power cut does not damage it. Some disks report
// writes as done before they are. So at the first use of a layer after a restart of the machine, the sizes
// of its files are compared once.

// settledFile is in a layer's directory once its sizes were checked.
const settledFile = "settled"

// ReadChecked reads the record of a layer that passes the quick check of sizes.
func ReadChecked(s *records.Store, diffID digest.Digest) (*records.Layer, error) {
	rec, err := s.ReadLayer(diffID)
	if err == nil {
		err = Recheck(s, []digest.Digest{diffID})
	}
	return rec, err
}

// parallelChecks is how many layers are checked at once.
const parallelChecks = 6

// Recheck compares the sizes of files in the layers that were stored before the machine's last restart and
// not checked since.
func Recheck(s *records.Store, diffIDs []digest.Digest) error {
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for _, id := range records.UniqueDigests(diffIDs) {
		rec, err := s.ReadLayer(id)
		if err != nil {
			return err
		}
		rechecked := filepath.Join(s.LayerDir(id), settledFile)
		if _, err := os.Lstat(rechecked); err == nil || rec.Boot == s.Boot {
			continue
		}
		group.Go(func() error {
			if _, err := os.Stat(filepath.Join(s.LayerDir(id), layer.RecipeFile)); errors.Is(err, fs.ErrNotExist) {
				return nil // stored by an older podrun
			}
			r, err := layer.Rebuild(id, s.LayerDir(id), true, nil)
			if err != nil {
				return err
			}
			if len(r.Changed) > 0 {
				return errors.Join(fmt.Errorf("layer %s is damaged: %s", id, summarize(r.Changed)), s.MarkDamaged(id, summarize(r.Changed)))
			}
			return ignoreNoSpace(store.WriteVolatile(rechecked, nil)) // lost in a power cut, it is made again
		})
	}
	return group.Wait()
}

// ignoreNoSpace ignores a full disk, because the work can be done later.
func ignoreNoSpace(err error) error {
	if isNoSpace(err) {
		return nil
	}
	return err
}

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func summarize(bad []layer.ChangedFile) string {
	text := strings.TrimPrefix(bad[0].Name+": "+bad[0].Why, ": ")
	if more := len(bad) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
