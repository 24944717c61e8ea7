package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replacement is the record of a pod that is to be stopped, removed and made anew from another
// manifest. It exists from before the stop until the new pod runs, and ends with the machine.
type Replacement struct {
	ID            string            `json:"id"`       // differs in each
	Manifest      json.RawMessage   `json:"manifest"` // a v1.Pod
	Images        map[string]string `json:"images"`   // their ids by the references in the manifest
	RequireLimits bool              `json:"requireLimits,omitempty"`
	Failed        string            `json:"failed,omitempty"` // why the new pod could not be made
}

func (d Dirs) replacementFile(p Pod) string {
	return filepath.Join(d.Runtime, "replacing", p.Namespace, p.Name+".json")
}

// Replacement reads the record of a pod's replacement; nil if there is none.
func (d Dirs) Replacement(p Pod) (*Replacement, error) {
	var r Replacement
	err := readJSON(d.replacementFile(p), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the replacement of pod %s: %w", p.Name, err)
	}
	return &r, nil
}

// Replacements are the pods for which there is a record.
func (d Dirs) Replacements() ([]Pod, error) {
	files, err := filepath.Glob(filepath.Join(d.Runtime, "replacing", "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list replacements: %w", err)
	}
	var places []Pod
	for _, file := range files {
		name := filepath.Base(file)
		places = append(places, d.Pod(filepath.Base(filepath.Dir(file)), name[:len(name)-len(".json")]))
	}
	return places, nil
}

// WriteReplacement records a replacement.
func (d Dirs) WriteReplacement(p Pod, r *Replacement) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.replacementFile(p)), 0o700)
	}
	if err == nil {
		err = WriteVolatile(d.replacementFile(p), b)
	}
	if err != nil {
		return fmt.Errorf("record the replacement of pod %s: %w", p.Name, err)
	}
	return nil
}

// DropReplacement removes the record, if there is one.
func (d Dirs) DropReplacement(p Pod) error {
	if err := os.Remove(d.replacementFile(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the replacement of pod %s: %w", p.Name, err)
	}
	return nil
}

// LockReplacement is held by the process that replaces a pod.
func (d Dirs) LockReplacement(p Pod) (*FileLock, error) {
	dir := filepath.Dir(d.replacementFile(p))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock the replacement of pod %s: %w", p.Name, err)
	}
	return OpenFileLock(filepath.Join(dir, p.Name+".lock"))
}
