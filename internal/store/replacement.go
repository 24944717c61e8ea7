package store

import (
	"encoding/json"
	"path/filepath"
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

func (d Dirs) replacements() podRecords[Replacement] {
	dir := filepath.Join(d.Runtime, "replacing")
	return podRecords[Replacement]{what: "replacement", dir: dir, locks: dir, put: WriteVolatile}
}

// Replacement reads the record of a pod's replacement; nil if there is none.
func (d Dirs) Replacement(p Pod) (*Replacement, error) { return d.replacements().read(p) }

// Replacements returns the pods that have a record.
func (d Dirs) Replacements() ([]Pod, error) { return d.replacements().pods(d) }

// WriteReplacement records a replacement.
func (d Dirs) WriteReplacement(p Pod, r *Replacement) error {
	lock, err := d.LockObjects()
	if err != nil {
		return err
	}
	defer lock.Close()
	return d.replacements().write(p, r)
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
		return d.replacements().write(p, r)
	}
	return d.RemoveReplacement(p)
}

// RemoveReplacement removes the record, if there is one.
func (d Dirs) RemoveReplacement(p Pod) error { return d.replacements().drop(p) }

// LockReplacement opens the lock of the process that replaces a pod.
func (d Dirs) LockReplacement(p Pod) (*FileLock, error) { return d.replacements().lock(p) }
