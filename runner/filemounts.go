package runner

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// fileMounts are the files that podrun makes for a container. Those whose paths are in a
// volume of the container's come over it, after it: what a container has at /etc or /tmp
// hides neither /etc/hosts nor the termination message (containerd: sorted mounts in
// internal/cri/opts). A volume mounted at such a path itself wins, as with the kubelet.
func fileMounts(c *pod.Container, at place) (files, over []specs.Mount) {
	for _, f := range []struct{ source, target string }{
		{at.hosts, "/etc/hosts"}, {at.hostname, "/etc/hostname"}, {at.resolv, "/etc/resolv.conf"}, {at.terminationLog, c.TerminationMessagePath},
	} {
		i := mountAround(c, f.target)
		switch {
		case f.source == "" || f.target == "" || slices.Contains(at.homeless, f.target):
		case i < 0:
			files = append(files, bind(f.source, f.target, "nosuid", "nodev"))
		case c.Mounts[i].Path != f.target:
			over = append(over, bind(f.source, f.target, "nosuid", "nodev"))
		}
	}
	return files, over
}

// mountAround is the index of the container's mount that a path is in, -1 if it is in none.
func mountAround(c *pod.Container, target string) int {
	found := -1
	for i, m := range c.Mounts {
		if within(target, m.Path) && (found < 0 || len(m.Path) >= len(c.Mounts[found].Path)) {
			found = i
		}
	}
	return found
}

// homeless are the files that have no place in their volume: it has none of the name, and
// none can be made there, because it is read-only or somebody else's, as the host's /dev
// is. The container does without; in a volume that it may write to, the place is made.
func homeless(plan *pod.Plan, c *pod.Container, at *place) []string {
	_, over := fileMounts(c, *at)
	var list []string
	for _, f := range over {
		i := mountAround(c, f.Destination)
		m := c.Mounts[i]
		options := mountOptions(plan, m, at.recursive)
		readOnly := slices.Contains(options, "ro") || slices.Contains(options, "rro")
		if !volumes.HasPlace(at.sources[i], f.Destination[len(m.Path):], !readOnly) {
			list = append(list, f.Destination)
		}
	}
	return list
}
