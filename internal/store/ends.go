package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/podrun/podrun/pod"
)

// endsFile is on disk: it outlives the machine.
const endsFile = "ends.json"

// WriteEnds records durably how containers have ended that are not to be run again, by
// their names.
func (p Pod) WriteEnds(ends map[string]pod.End) error {
	b, err := json.Marshal(ends)
	if err == nil {
		err = WriteFile(filepath.Join(p.data, endsFile), b)
	}
	if err != nil {
		return fmt.Errorf("record the ends of containers: %w", err)
	}
	return nil
}

// Ends reads what WriteEnds has recorded; nothing if there is none.
func (p Pod) Ends() (map[string]pod.End, error) {
	var ends map[string]pod.End
	if err := readJSON(filepath.Join(p.data, endsFile), &ends); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the ends of containers: %w", err)
	}
	return ends, nil
}
