package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/podrun/podrun/internal/pod"
)

// exitsFile is on disk: it outlives a reboot.
const exitsFile = "exits.json"

// WriteExits records durably, by container name, the exits of containers that will not run again.
func (p Pod) WriteExits(exits map[string]pod.Exit) error {
	if err := writeJSON(WriteFile, filepath.Join(p.data, exitsFile), exits); err != nil {
		return fmt.Errorf("record the exits of containers: %w", err)
	}
	return nil
}

// Exits reads what WriteExits has recorded; nothing if there is no record.
func (p Pod) Exits() (map[string]pod.Exit, error) {
	var exits map[string]pod.Exit
	if err := readJSON(filepath.Join(p.data, exitsFile), &exits); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the exits of containers: %w", err)
	}
	return exits, nil
}
