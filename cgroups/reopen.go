package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"

	"github.com/podrun/podrun/internal/delegation"
)

// Reopen returns a pod's cgroup that CreatePod has made in an earlier process. path is its Path.
func Reopen(path string) (*Pod, error) {
	enabled, err := os.ReadFile(filepath.Join(path, "cgroup.subtree_control"))
	if err != nil {
		return nil, fmt.Errorf("reopen the pod's cgroup: %w", err)
	}
	m, err := cgroup2.Load(strings.TrimPrefix(path, delegation.Mount))
	if err != nil {
		return nil, fmt.Errorf("reopen the pod's cgroup: %w", err)
	}
	s := Subtree{Path: filepath.Dir(path), Controllers: strings.Fields(string(enabled))}
	return &Pod{subtree: s, name: filepath.Base(path), manager: m}, nil
}
