package store

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"
)

// UpdateState is the progress of an update of a pod's images.
type UpdateState string

const (
	UpdateTrying    UpdateState = "trying"    // the pod runs the new images and is being watched
	UpdateTagging   UpdateState = "tagging"   // the new images are accepted; their names are being moved to them
	UpdateDone      UpdateState = "done"      // the names have been moved
	UpdateUntagging UpdateState = "untagging" // the pod runs the old images again; their names are being moved back
	UpdateUndone    UpdateState = "undone"    // the names have been moved back
)

// Update is the record of a pod's last update: its old and its new images.
type Update struct {
	State    UpdateState     `json:"state"`
	Boot     string          `json:"boot"` // boot id of the boot in which it was tried
	At       time.Time       `json:"at"`
	Images   []UpdatedImage  `json:"images"`
	Manifest json.RawMessage `json:"manifest,omitempty"` // only for a pod without a unit: a v1.Pod
}

// UpdatedImage is an image of the pod by its reference in the manifest. Old and New are ids,
// sha256:<hex>.
type UpdatedImage struct {
	Ref    string `json:"ref"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Digest string `json:"digest,omitempty"` // of New in its registry
}

// Rejected reports whether the last update of a pod to this image was undone: the pod failed with it, or was rolled
// back by hand. The image is given by its id, or by its digest in the registry; the other is "".
func (u *Update) Rejected(ref, id, digest string) bool {
	return u != nil && u.State == UpdateUndone && slices.ContainsFunc(u.Images, func(i UpdatedImage) bool {
		return i.Ref == ref && (id != "" && i.New == id || digest != "" && i.Digest == digest)
	})
}

func (d Dirs) updates() podRecords[Update] {
	return podRecords[Update]{
		what: "last update", dir: filepath.Join(d.Data, "updates"), put: WriteFile,
		locks: filepath.Join(d.Runtime, "updates"), // in memory: no update continues after a reboot
	}
}

// Update reads the record of a pod's last update; nil if there was none.
func (d Dirs) Update(p Pod) (*Update, error) { return d.updates().read(p) }

// Updates returns the records of all pods, by namespace and name. It returns the readable records
// and an error for the others.
func (d Dirs) Updates() (map[[2]string]*Update, error) {
	places, err := d.updates().pods(d)
	errs := []error{err}
	list := map[[2]string]*Update{}
	for _, p := range places {
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
func (d Dirs) WriteUpdate(p Pod, u *Update) error { return d.updates().write(p, u) }

// RemoveUpdate removes the record of a pod's last update, if there is one.
func (d Dirs) RemoveUpdate(p Pod) error { return d.updates().drop(p) }

// LockUpdate opens the lock of the process that updates a pod.
func (d Dirs) LockUpdate(p Pod) (*FileLock, error) { return d.updates().lock(p) }

// UpdateRunning reports whether a process is trying the update's new images now.
func (d Dirs) UpdateRunning(p Pod, u *Update) bool {
	if u.State != UpdateTrying || u.Boot != BootID() {
		return false
	}
	lock, err := d.LockUpdate(p)
	if err != nil {
		return false
	}
	defer lock.Close()
	held, err := lock.Held()
	return err == nil && held
}
