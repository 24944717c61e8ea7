package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/protocol"
)

// Pods returns the existing pods, by namespace and name.
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

// EachPod is Pods for a caller that looks for one pod: it does not look up the pods after that one.
// An error comes last.
func (d Dirs) EachPod() iter.Seq2[Pod, error] {
	return func(yield func(Pod, error) bool) {
		for n, err := range d.eachName() {
			if err != nil {
				yield(Pod{}, err)
				return
			}
			if !yield(d.Pod(n.namespace, n.name), nil) {
				return
			}
		}
	}
}

// podName is the namespace and the name of a pod.
type podName struct{ namespace, name string }

// eachName is EachPod without a look into the directories of the pods.
func (d Dirs) eachName() iter.Seq2[podName, error] {
	return func(yield func(podName, error) bool) {
		root := filepath.Join(d.Data, protocol.FilePods)
		spaces, err := os.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(podName{}, fmt.Errorf("list pods: %w", err))
			return
		}
		for _, space := range spaces {
			names, err := os.ReadDir(filepath.Join(root, space.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // the directory goes with its last pod
				yield(podName{}, fmt.Errorf("list pods: %w", err))
				return
			}
			for _, name := range names {
				if !yield(podName{space.Name(), name.Name()}, nil) {
					return
				}
			}
		}
	}
}

// WatchDirs returns the directories that change when pods come and go.
func (d Dirs) WatchDirs() ([]string, error) {
	root := filepath.Join(d.Data, protocol.FilePods)
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

// ObjectDirs returns the existing directories that change when objects of the given kinds, the states
// of workloads, or the directories of claims do.
func (d Dirs) ObjectDirs(kinds ...pod.ObjectKind) ([]string, error) {
	objects, ofCluster, workloads := d.objectsRoot(d.Data), d.OfCluster().objectsRoot(d.Data), workloadsRoot(d.Data)
	list := []string{d.Data, objects, ofCluster, workloads}
	roots := []string{d.volumesRoot()}
	for _, kind := range kinds {
		for _, root := range []string{objects, ofCluster, workloads} {
			roots = append(roots, filepath.Join(root, objectDirs[kind]))
		}
	}
	for _, root := range roots {
		spaces, err := filepath.Glob(filepath.Join(root, "*")) // of cluster-scoped kinds these are files
		if err != nil {
			return nil, fmt.Errorf("watch objects: %w", err)
		}
		list = append(append(list, root), spaces...)
	}
	return slices.DeleteFunc(list, func(dir string) bool { return !isDir(dir) }), nil
}
