package container

import (
	"slices"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// withMountPoints adds a layer with the mount points of nearly every container below the layers of an image.
// Otherwise each container would make a dozen directories and files of its own, of which most images have a few.
// A layer that cannot be made is left out: the mount points are then made as for other volumes.
func (x *Container) withMountPoints(s *sandbox.Sandbox, layers []string) []string {
	if s.Plan.Users != nil || s.Plan.LayerLabel != "" { // these need other owners or labels
		return layers
	}
	dirs, files := commonMountPoints(s, x.Plan)
	layer, err := volumes.MountPointsLayer(s.Pod.MountPointsDir(), dirs, files)
	if err != nil {
		return layers
	}
	return append([]string{layer}, layers...)
}

// commonMountPoints returns the mount points that nearly every container has. It returns none that would be
// visible because nothing is mounted there, and none of a user's choice: each set has a layer that stays.
func commonMountPoints(s *sandbox.Sandbox, c *pod.Container) (dirs, files []string) {
	dirs = []string{"/dev", "/proc", "/sys"}
	if slices.ContainsFunc(c.Mounts, func(m pod.Mount) bool {
		v := s.Volume(m.Volume)
		return m.Path == pod.ServiceAccountPath && m.SubPath+m.SubPathExpr == "" && v != nil && v.Kind == pod.Files
	}) {
		dirs = append(dirs, pod.ServiceAccountPath)
	}
	for _, name := range []string{hostsFile, hostnameFile, resolvFile} {
		if mountAround(c, name) < 0 {
			files = append(files, name)
		}
	}
	return dirs, files
}
