package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/store"
)

// Records is the directory with the API server's pods that this host runs, one file for each. With it the agent
// starts them while the API server cannot be reached, and finds out which of them the API server has deleted
// while the agent did not run.
type Records string

// Load returns the recorded pods.
func (r Records) Load() (pods []*corev1.Pod, err error) {
	entries, err := os.ReadDir(string(r))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pods of the node: %w", err)
	}
	for _, e := range entries {
		uid, ok := uidOf(e.Name())
		if !ok {
			continue
		}
		text, err := os.ReadFile(r.file(uid))
		if err != nil {
			return nil, fmt.Errorf("read a pod of the node: %w", err)
		}
		p := &corev1.Pod{}
		if err := json.Unmarshal(text, p); err != nil {
			return nil, fmt.Errorf("read pod %s of the node: %w", r.file(uid), err)
		}
		if err := checkIdentity(p); err != nil {
			return nil, fmt.Errorf("read pod %s of the node: %w", r.file(uid), err)
		}
		if p.UID != uid {
			return nil, fmt.Errorf("read pod %s of the node: it is of pod %s", r.file(uid), p.UID)
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// Put records a pod, durably.
func (r Records) Put(p *corev1.Pod) error {
	p = p.DeepCopy()
	p.ManagedFields = nil
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode pod %s: %w", p.Name, err)
	}
	if err := os.MkdirAll(string(r), 0o700); err != nil {
		return fmt.Errorf("record pod %s: %w", p.Name, err)
	}
	if err := store.WriteFile(r.file(p.UID), text); err != nil {
		return fmt.Errorf("record pod %s: %w", p.Name, err)
	}
	return nil
}

// Remove removes the record of a pod, if there is one.
func (r Records) Remove(uid types.UID) error {
	if err := os.Remove(r.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a pod: %w", err)
	}
	return nil
}

const extension = ".json"

// file returns the file of a pod, whose UID is valid.
func (r Records) file(uid types.UID) string {
	return filepath.Join(string(r), string(uid)+extension)
}

// uidOf returns the UID in the name of a record.
func uidOf(name string) (types.UID, bool) {
	if filepath.Ext(name) != extension || name[0] == '.' {
		return "", false
	}
	return types.UID(name[:len(name)-len(extension)]), true
}
