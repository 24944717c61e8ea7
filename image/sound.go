package image

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

	"github.com/podrun/podrun/internal/store"
)

// A layer is made durable before it has its name, so a power cut cannot take of it. But
// not every disk does what it says it has done: so when a layer is first used after the
// machine was restarted since it was stored, the sizes of its files are looked at, once.

// settledFile is in the directory of a layer whose sizes were looked at.
const settledFile = "settled"

// soundLayer reads a layer that has not been damaged, as far as a quick look tells.
func soundLayer(s *recordStore, diffID digest.Digest) (*layerRecord, error) {
	rec, err := s.readLayer(diffID)
	if err == nil {
		err = settle(s, []digest.Digest{diffID})
	}
	return rec, err
}

// parallelChecks is how many layers are looked at at once.
const parallelChecks = 6

// settle looks at the sizes in those layers that were stored before the machine was
// restarted last, and that nobody has looked at since.
func settle(s *recordStore, diffIDs []digest.Digest) error {
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for _, id := range unique(diffIDs) {
		rec, err := s.readLayer(id)
		if err != nil {
			return err
		}
		settled := filepath.Join(s.layerDir(id), settledFile)
		if _, err := os.Lstat(settled); err == nil || rec.Boot == s.boot {
			continue
		}
		group.Go(func() error {
			if _, err := os.Stat(filepath.Join(s.layerDir(id), recipeFile)); errors.Is(err, fs.ErrNotExist) {
				return nil // an earlier podrun's
			}
			r, err := rebuildLayer(id, s.layerDir(id), true, nil)
			if err != nil {
				return err
			}
			if len(r.Bad) > 0 {
				return errors.Join(fmt.Errorf("layer %s is damaged: %s", id, summary(r.Bad)), s.mark(id, summary(r.Bad)))
			}
			return ignoreFull(store.WriteVolatile(settled, nil)) // lost with the power it is made again
		})
	}
	return group.Wait()
}

// ignoreFull forgives what can be done another time, when there is room.
func ignoreFull(err error) error {
	if diskFull(err) {
		return nil
	}
	return err
}

func diskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func summary(bad []badFile) string {
	text := strings.TrimPrefix(bad[0].Name+": "+bad[0].Why, ": ")
	if more := len(bad) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
