package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Pods lists the pods there are, by namespace and name.
func (d Dirs) Pods() ([]Pod, error) {
	var pods []Pod
	for p, err := range d.EachPod() {
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// EachPod is Pods for who looks for one of them: the places of others are not looked up. An
// error is the last that comes.
func (d Dirs) EachPod() iter.Seq2[Pod, error] {
	return func(yield func(Pod, error) bool) {
		root := filepath.Join(d.Data, "pods")
		spaces, err := os.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Pod{}, fmt.Errorf("list pods: %w", err))
			return
		}
		for _, space := range spaces {
			names, err := os.ReadDir(filepath.Join(root, space.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // it goes with its last pod
				yield(Pod{}, fmt.Errorf("list pods: %w", err))
				return
			}
			for _, name := range names {
				if !yield(d.Pod(space.Name(), name.Name()), nil) {
					return
				}
			}
		}
	}
}

// WatchDirs are the directories in which something changes when pods come and go.
func (d Dirs) WatchDirs() ([]string, error) {
	root := filepath.Join(d.Data, "pods")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	spaces, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	pods, err := filepath.Glob(filepath.Join(root, "*", "*")) // a name has no "*"
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return slices.Concat([]string{root}, spaces, pods), nil
}
