package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// UpdateState is how far an update of a pod's images has come.
type UpdateState string

const (
	UpdateTrying    UpdateState = "trying"    // the pod is made of the new images, and watched
	UpdateTagging   UpdateState = "tagging"   // the new images are the pod's; their names are being moved to them
	UpdateDone      UpdateState = "done"      // and have been moved
	UpdateUntagging UpdateState = "untagging" // the pod is back at the old ones; their names are being moved back
	UpdateUndone    UpdateState = "undone"    // and have been moved
)

// Update is the record of a pod's last update: what it had before, and what it was to have.
type Update struct {
	State    UpdateState     `json:"state"`
	Boot     string          `json:"boot"` // of the machine, in which it was tried
	At       time.Time       `json:"at"`
	Images   []UpdatedImage  `json:"images"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // of a pod without a unit: a v1.Pod
}

// UpdatedImage is an image of the pod by its reference in the manifest. Old and New are ids,
// sha256:<hex>.
type UpdatedImage struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

func (d Dirs) updateFile(p Pod) string {
	return filepath.Join(d.Data, "updates", p.Namespace, p.Name+".json")
}

// Update reads the record of a pod's last update; nil if there was none.
func (d Dirs) Update(p Pod) (*Update, error) {
	var u Update
	err := readJSON(d.updateFile(p), &u)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the last update of pod %s: %w", p.Name, err)
	}
	return &u, nil
}

// Updates are the records of all pods, by namespace and name. What cannot be read gives an
// error beside the others.
func (d Dirs) Updates() (map[[2]string]*Update, error) {
	files, err := filepath.Glob(filepath.Join(d.Data, "updates", "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list updates: %w", err)
	}
	list := map[[2]string]*Update{}
	var errs []error
	for _, file := range files {
		name := filepath.Base(file)
		p := Pod{Namespace: filepath.Base(filepath.Dir(file)), Name: name[:len(name)-len(".json")]}
		u, err := d.Update(p)
		if err != nil || u == nil {
			errs = append(errs, err)
			continue
		}
		list[[2]string{p.Namespace, p.Name}] = u
	}
	return list, errors.Join(errs...)
}

// WriteUpdate records an update, durably.
func (d Dirs) WriteUpdate(p Pod, u *Update) error {
	b, err := json.Marshal(u)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.updateFile(p)), 0o700)
	}
	if err == nil {
		err = WriteFile(d.updateFile(p), b)
	}
	if err != nil {
		return fmt.Errorf("record the update of pod %s: %w", p.Name, err)
	}
	return nil
}

// DropUpdate forgets a pod's last update.
func (d Dirs) DropUpdate(p Pod) error {
	if err := os.Remove(d.updateFile(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the last update of pod %s: %w", p.Name, err)
	}
	return nil
}

// LockUpdate is held by who updates a pod. It is in memory: nobody does so after a reboot.
func (d Dirs) LockUpdate(p Pod) (*FileLock, error) {
	dir := filepath.Join(d.Runtime, "updates", p.Namespace)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock the update of pod %s: %w", p.Name, err)
	}
	return OpenFileLock(filepath.Join(dir, p.Name+".lock"))
}

// Trying says whether somebody is trying the update's new images at this moment.
func (d Dirs) Trying(p Pod, u *Update) bool {
	if u.State != UpdateTrying || u.Boot != BootID() {
		return false
	}
	lock, err := d.LockUpdate(p)
	if err != nil {
		return false
	}
	defer lock.Close()
	free, err := lock.TryExclusive()
	return err == nil && !free
}
