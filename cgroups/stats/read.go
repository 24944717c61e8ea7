package stats

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Read takes a sample of a cgroup, by its directory. A missing cgroup gives fs.ErrNotExist.
func Read(dir string) (Sample, error) {
	files := map[string]string{}
	for _, name := range controllerFiles {
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			files[name] = string(b)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
			// no such controller, or a kernel with pressure measurement disabled; or the group was
			// just removed
		default:
			return Sample{}, fmt.Errorf("read what is used: %w", err)
		}
	}
	moment := time.Now()
	if len(files) == 0 {
		return Sample{}, fmt.Errorf("read what %s uses: %w", dir, fs.ErrNotExist)
	}
	s, err := parse(files)
	s.At = moment
	return s, err
}
