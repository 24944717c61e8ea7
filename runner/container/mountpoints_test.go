package container

import (
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
)

// A mount point where nothing is mounted would be visible, and one of another type would prevent the mount.
func TestCommonMountPoints(t *testing.T) {
	volumes := []pod.Volume{{Name: "files", Kind: pod.Files}, {Name: "dir", Kind: pod.HostPath}}
	for _, tt := range []struct {
		name    string
		mount   pod.Mount
		account bool
		files   int
	}{
		{"files of the account", pod.Mount{Volume: "files", Path: pod.ServiceAccountPath}, true, 3},
		{"one file of it", pod.Mount{Volume: "files", Path: pod.ServiceAccountPath, SubPath: "token"}, false, 3},
		{"a path of the host, perhaps a file", pod.Mount{Volume: "dir", Path: pod.ServiceAccountPath}, false, 3},
		{"another path", pod.Mount{Volume: "files", Path: "/files"}, false, 3},
		{"a volume instead of a file", pod.Mount{Volume: "files", Path: "/etc/hosts", SubPath: "hosts"}, false, 2},
		{"a volume around the files", pod.Mount{Volume: "dir", Path: "/etc"}, false, 0},
	} {
		plan := &pod.Plan{Volumes: volumes, Containers: []pod.Container{{Name: "a", Mounts: []pod.Mount{tt.mount}}}}
		dirs, files := commonMountPoints(&sandbox.Sandbox{Plan: plan}, &plan.Containers[0])
		if slices.Contains(dirs, pod.ServiceAccountPath) != tt.account || len(files) != tt.files {
			t.Errorf("%s: directories %v, files %v", tt.name, dirs, files)
		}
	}
}
