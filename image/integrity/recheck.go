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

// A layer is made durable before it has its name, so a power cut cannot take of it. But
// not every disk does what it says it has done: so when a layer is first used after the
// machine was restarted since it was stored, the sizes of its files are looked at, once.

// recheckedFile is in the directory of a layer whose sizes were looked at.
const recheckedFile = "settled"

// ReadChecked reads a layer that has not been damaged, as far as a quick look tells.
func ReadChecked(s *records.Store, diffID digest.Digest) (*records.Layer, error) {
	rec, err := s.ReadLayer(diffID)
	if err == nil {
		err = Recheck(s, []digest.Digest{diffID})
	}
	return rec, err
}

// parallelChecks is how many layers are looked at at once.
const parallelChecks = 6

// Recheck looks at the sizes in those layers that were stored before the machine was
// restarted last, and that nobody has looked at since.
func Recheck(s *records.Store, diffIDs []digest.Digest) error {
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for _, id := range records.UniqueDigests(diffIDs) {
		rec, err := s.ReadLayer(id)
		if err != nil {
			return err
		}
		settled := filepath.Join(s.LayerDir(id), recheckedFile)
		if _, err := os.Lstat(settled); err == nil || rec.Boot == s.Boot {
			continue
		}
		group.Go(func() error {
			if _, err := os.Stat(filepath.Join(s.LayerDir(id), layer.TarSplitFile)); errors.Is(err, fs.ErrNotExist) {
				return nil // an earlier podrun's
			}
			r, err := layer.Rebuild(id, s.LayerDir(id), true, nil)
			if err != nil {
				return err
			}
			if len(r.Changed) > 0 {
				return errors.Join(fmt.Errorf("layer %s is damaged: %s", id, summarize(r.Changed)), s.MarkDamaged(id, summarize(r.Changed)))
			}
			return ignoreNoSpace(store.WriteVolatile(settled, nil)) // lost with the power it is made again
		})
	}
	return group.Wait()
}

// ignoreNoSpace forgives what can be done another time, when there is room.
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
