package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// podRecords are the records of one kind: at most one for each pod, in dir/NAMESPACE/NAME.json.
// They are separate from the pods, because they outlive them.
type podRecords[T any] struct {
	what  string // in errors: "update"
	dir   string
	locks string // the directory of their locks
	put   func(path string, data []byte) error
}

func (r podRecords[T]) file(p Pod) string {
	return filepath.Join(r.dir, p.Namespace, p.Name+".json")
}

// read returns nil if there is no record.
func (r podRecords[T]) read(p Pod) (*T, error) {
	v := new(T)
	switch err := readJSON(r.file(p), v); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record of the %s of pod %s: %w", r.what, p.Name, err)
	}
	return v, nil
}

// pods returns the pods that have a record.
func (r podRecords[T]) pods(d Dirs) ([]Pod, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list records of a pod's %s: %w", r.what, err)
	}
	var places []Pod
	for _, file := range files {
		places = append(places, d.Pod(filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".json")))
	}
	return places, nil
}

func (r podRecords[T]) write(p Pod, v *T) error {
	err := os.MkdirAll(filepath.Dir(r.file(p)), 0o700)
	if err == nil {
		err = writeJSON(r.put, r.file(p), v)
	}
	if err != nil {
		return fmt.Errorf("record the %s of pod %s: %w", r.what, p.Name, err)
	}
	return nil
}

// drop removes the record, if there is one.
func (r podRecords[T]) drop(p Pod) error {
	if err := os.Remove(r.file(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the %s of pod %s: %w", r.what, p.Name, err)
	}
	return nil
}

// lock opens the lock of the process that works on the record.
func (r podRecords[T]) lock(p Pod) (*FileLock, error) {
	dir := filepath.Join(r.locks, p.Namespace)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock the %s of pod %s: %w", r.what, p.Name, err)
	}
	return OpenFileLock(filepath.Join(dir, p.Name+".lock"))
}
