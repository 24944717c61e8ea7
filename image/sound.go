package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/store"
)

// A layer is made durable before it has its name, so a power cut cannot take of it. But
// not every disk does what it says it has done: so when a layer is first used after the
// machine was restarted since it was stored, the sizes of its files are looked at, once.

// damageFile is in the directory of a layer that is known to be damaged, and says how:
// pods that run from it go on, no other begins, and the next pull or load replaces it.
func (s *Store) damageFile(diffID digest.Digest) string {
	return filepath.Join(s.layerDir(diffID), "damaged")
}

// settledFile is in the directory of a layer whose sizes were looked at.
const settledFile = "settled"

// soundLayer reads a layer that has not been damaged, as far as a quick look tells.
func (s *Store) soundLayer(diffID digest.Digest) (*layerRecord, error) {
	rec, err := s.readLayer(diffID)
	if err == nil {
		err = s.settle([]digest.Digest{diffID})
	}
	return rec, err
}

// settle looks at the sizes in those layers that were stored before the machine was
// restarted last, and that nobody has looked at since.
func (s *Store) settle(diffIDs []digest.Digest) error {
	var group errgroup.Group
	group.SetLimit(parallelLayers)
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
			r, err := s.rebuild(id, true, nil)
			if err != nil {
				return err
			}
			if len(r.Bad) > 0 {
				return errors.Join(fmt.Errorf("layer %s is damaged: %s", id, summary(r.Bad)), s.mark(id, r.Bad))
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

// mark keeps a damaged layer from being used.
func (s *Store) mark(id digest.Digest, bad []badFile) error {
	return store.WriteFile(s.damageFile(id), []byte(summary(bad)))
}

func summary(bad []badFile) string {
	text := strings.TrimPrefix(bad[0].Name+": "+bad[0].Why, ": ")
	if more := len(bad) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// rebuild makes a layer's tar stream again, or looks at its sizes. out, if it is not nil,
// gets the stream.
func (s *Store) rebuild(id digest.Digest, sizes bool, out *os.File) (*rebuilt, error) {
	recipe, err := os.Open(filepath.Join(s.layerDir(id), recipeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, report.New(report.Failure, "pull or load its image again", "layer %s has no record of its files: an earlier podrun has stored it", id)
	}
	if err != nil {
		return nil, err
	}
	defer recipe.Close()
	arg, err := json.Marshal(rebuildOrder{Dir: filepath.Join(s.layerDir(id), layerFS), Sizes: sizes, Write: out != nil})
	if err != nil {
		return nil, err
	}
	extra := []*os.File{recipe}
	var said strings.Builder
	var stderr tail
	var answer, theirs *os.File
	if out != nil {
		if answer, theirs, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer answer.Close()
		extra = append(extra, theirs)
	}
	cmd := stage.Command(stage.Spec{Name: rebuildStage, Args: []string{string(arg)}, Userns: true, Net: true, ExtraFiles: extra})
	bare(cmd)
	cmd.Dir, cmd.Stderr = "/", &stderr
	if out != nil {
		cmd.Stdout = out
	} else {
		cmd.Stdout = &said
	}
	err = cmd.Start()
	if theirs != nil {
		theirs.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, err)
	}
	var r rebuilt
	var rerr error
	if answer != nil {
		rerr = json.NewDecoder(answer).Decode(&r)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, saidOr(&stderr, err))
	}
	if answer == nil {
		rerr = json.Unmarshal([]byte(said.String()), &r)
	}
	if rerr != nil {
		return nil, fmt.Errorf("look at layer %s: %w", id, rerr)
	}
	return &r, nil
}

// saidOr is what a child said of its failure, if anything.
func saidOr(stderr *tail, err error) error {
	var exit *exec.ExitError
	if said := stderr.String(); said != "" && errors.As(err, &exit) {
		return errors.New(said)
	}
	return err
}

// retire makes a place for a damaged layer that is replaced: pods may run from it.
func (s *Store) retire(hex string) (string, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.dir, retiredDir), hex+"."+s.boot+".")
	return filepath.Join(dir, "layer"), err
}

// retired lists replaced layers that nobody can be using any more: the machine was
// restarted since, or no pod uses the layer. The store's lock is held alone.
func (s *Store) retired(inUse func(string) bool) ([]string, error) {
	dir := filepath.Join(s.dir, retiredDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("clean image store: %w", err)
	}
	var free []string
	for _, e := range entries {
		hex, rest, _ := strings.Cut(e.Name(), ".")
		boot, _, _ := strings.Cut(rest, ".")
		if boot != s.boot || inUse == nil || !inUse(filepath.Join(s.dir, layersDir, hex, layerFS)) {
			free = append(free, filepath.Join(dir, e.Name()))
		}
	}
	return free, nil
}
