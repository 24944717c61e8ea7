package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/podrun/podrun/pod"
)

// exitsFile is on disk: it outlives a reboot.
const exitsFile = "ends.json"

// WriteExits records durably, by container name, the exits of containers that will not run again.
func (p Pod) WriteExits(ends map[string]pod.Exit) error {
	b, err := json.Marshal(ends)
	if err == nil {
		err = WriteFile(filepath.Join(p.data, exitsFile), b)
	}
	if err != nil {
		return fmt.Errorf("record the ends of containers: %w", err)
	}
	return nil
}

// Exits reads what WriteExits has recorded; nothing if there is no record.
func (p Pod) Exits() (map[string]pod.Exit, error) {
	var ends map[string]pod.Exit
	if err := readJSON(filepath.Join(p.data, exitsFile), &ends); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the ends of containers: %w", err)
	}
	return ends, nil
}
