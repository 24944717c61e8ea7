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

// Read takes a sample of a cgroup, by its directory. One that is gone is
// fs.ErrNotExist.
func Read(dir string) (Sample, error) {
	files := map[string]string{}
	for _, name := range controllerFiles {
		b, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			files[name] = string(b)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP):
			// no such controller, or a kernel that was told not to measure pressure; or
			// the group has just gone
		default:
			return Sample{}, fmt.Errorf("read what is used: %w", err)
		}
	}
	at := time.Now()
	if len(files) == 0 {
		return Sample{}, fmt.Errorf("read what %s uses: %w", dir, fs.ErrNotExist)
	}
	s, err := parse(files)
	s.At = at
	return s, err
}
