package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replacement is the record of a pod that is to be stopped, removed and made again from another
// manifest. It exists from before the stop until the new pod runs, and does not outlive a reboot.
type Replacement struct {
	ID            string            `json:"id"`       // unique to the record
	Manifest      json.RawMessage   `json:"manifest"` // a v1.Pod
	Images        map[string]string `json:"images"`   // ids of the images, by their references in the manifest
	RequireLimits bool              `json:"requireLimits,omitempty"`
	Failed        string            `json:"failed,omitempty"` // why the new pod could not be made
}

func (d Dirs) replacementFile(p Pod) string {
	return filepath.Join(d.Runtime, "replacing", p.Namespace, p.Name+".json")
}

// Replacement reads the record of a pod's replacement; nil if there is none.
func (d Dirs) Replacement(p Pod) (*Replacement, error) {
	r := new(Replacement)
	switch err := readJSON(d.replacementFile(p), r); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record of the replacement of pod %s: %w", p.Name, err)
	}
	return r, nil
}

// Replacements returns the pods that have a record.
func (d Dirs) Replacements() ([]Pod, error) {
	files, err := filepath.Glob(d.replacementFile(Pod{Namespace: "*", Name: "*"}))
	if err != nil {
		return nil, fmt.Errorf("list replacements of pods: %w", err)
	}
	var pods []Pod
	for _, file := range files {
		pods = append(pods, d.Pod(filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".json")))
	}
	return pods, nil
}

func (d Dirs) putReplacement(p Pod, r *Replacement) error {
	file := d.replacementFile(p)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = writeJSON(WriteVolatile, file, r)
	}
	if err != nil {
		return fmt.Errorf("record the replacement of pod %s: %w", p.Name, err)
	}
	return nil
}

// WriteReplacement records a replacement.
func (d Dirs) WriteReplacement(p Pod, r *Replacement) error {
	lock, err := d.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	return d.putReplacement(p, r)
}

// EndReplacement removes a record, or writes into it why the new pod could not be made. It does
// nothing if another record has replaced this one.
func (d Dirs) EndReplacement(p Pod, r *Replacement, failed error) error {
	lock, err := d.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	now, err := d.Replacement(p)
	switch {
	case err != nil || now == nil || now.ID != r.ID:
		return err
	case failed != nil:
		r.Failed = failed.Error()
		return d.putReplacement(p, r)
	}
	return d.RemoveReplacement(p)
}

// RemoveReplacement removes the record, if there is one.
func (d Dirs) RemoveReplacement(p Pod) error {
	if err := os.Remove(d.replacementFile(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the replacement of pod %s: %w", p.Name, err)
	}
	return nil
}

// LockReplacement opens the lock of the process that replaces a pod.
func (d Dirs) LockReplacement(p Pod) (*FileLock, error) {
	dir := filepath.Dir(d.replacementFile(p))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock the replacement of pod %s: %w", p.Name, err)
	}
	return OpenFileLock(filepath.Join(dir, p.Name+".lock"))
}
