package container

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// Files that podrun makes for every container.
const (
	hostsFile    = "/etc/hosts"
	hostnameFile = "/etc/hostname"
	resolvFile   = "/etc/resolv.conf"
)

// fileMounts returns the mounts of the files that podrun makes for a container. The mounts in over have paths
// inside of a volume, and are made after the volume's: so a volume at /etc or /tmp hides neither /etc/hosts nor
// the termination message (containerd: sorted mounts in internal/cri/opts). A volume at exactly the path of a
// file replaces the file, as with the kubelet.
func fileMounts(c *pod.Container, input specInput) (files, over []specs.Mount) {
	for _, f := range []struct{ source, target string }{
		{input.hosts, hostsFile}, {input.hostname, hostnameFile}, {input.resolv, resolvFile}, {input.terminationLog, c.TerminationMessagePath},
	} {
		i := mountAround(c, f.target)
		switch {
		case f.source == "" || f.target == "" || slices.Contains(input.unplaceable, f.target):
		case i < 0:
			files = append(files, bindMount(f.source, f.target, "nosuid", "nodev"))
		case c.Mounts[i].Path != f.target:
			over = append(over, bindMount(f.source, f.target, "nosuid", "nodev"))
		}
	}
	return files, over
}

// mountAround returns the index of the container's mount that contains a path, or -1.
func mountAround(c *pod.Container, target string) int {
	found := -1
	for i, m := range c.Mounts {
		if Within(target, m.Path) && (found < 0 || len(m.Path) >= len(c.Mounts[found].Path)) {
			found = i
		}
	}
	return found
}

// unplaceableFiles returns the files that cannot be mounted in the volume around them: the volume has no file
// of the name, and none can be created, because the volume is read-only or belongs to others, as the host's
// /dev does. The container runs without these files. In a writable volume it creates the mount target.
func unplaceableFiles(plan *pod.Plan, c *pod.Container, input *specInput) []string {
	_, over := fileMounts(c, *input)
	var list []string
	for _, f := range over {
		i := mountAround(c, f.Destination)
		m := c.Mounts[i]
		options := mountOptions(plan, m, input.recursive)
		readOnly := slices.Contains(options, "ro") || slices.Contains(options, "rro")
		if !volumes.EnsureMountPoint(input.sources[i], f.Destination[len(m.Path):], !readOnly) {
			list = append(list, f.Destination)
		}
	}
	return list
}

// prepareMounts finds the sources of the container's mounts, checks whether the mounts can be made, and makes the
// mounts that need not wait for libcontainer.
func (x *Container) prepareMounts(s *sandbox.Sandbox, input *specInput, vars map[string]string) (err error) {
	input.recursive = volumes.RecursiveReadOnly()
	if err := checkMountable(x.Plan, input.recursive); err != nil {
		return err
	}
	if input.sources, err = x.stageSources(s, vars); err != nil {
		return err
	}
	if err := checkNested(s.Plan, x.Plan, input); err != nil {
		return err
	}
	input.unplaceable = unplaceableFiles(s.Plan, x.Plan, input)
	list := placements(s.Plan, x.Plan, input)
	input.prebound = bindOwnFiles(s.Plan, x.Plan, input, s.MapID(0))
	input.devptsMounted = mountsDevpts(s.Plan)
	input.premounted = volumes.Place(input.rootfs, s.MapID(0), list)
	return nil
}

// checkNested returns an error if a volume is to be mounted in a read-only one that lacks the mount point, which nothing
// can make there.
func checkNested(plan *pod.Plan, c *pod.Container, input *specInput) error {
	for _, inner := range c.Mounts {
		outer := -1
		for i, m := range c.Mounts {
			if m.Path != inner.Path && Within(inner.Path, m.Path) && (outer < 0 || len(m.Path) > len(c.Mounts[outer].Path)) {
				outer = i
			}
		}
		if outer < 0 {
			continue
		}
		around := c.Mounts[outer]
		options, below := mountOptions(plan, around, input.recursive), inner.Path[len(around.Path):]
		readOnly := slices.Contains(options, "ro") || slices.Contains(options, "rro")
		if readOnly && !volumes.EnsureMountPoint(input.sources[outer], below, false) {
			return sandbox.NewConfigError(fmt.Errorf("cannot mount volume %q at %s: volume %q is mounted read-only at %s and has no %s; "+
				"make it in that volume first (an init container can), mount that volume without readOnly, or choose a mountPath outside of it",
				inner.Volume, inner.Path, around.Volume, around.Path, strings.TrimPrefix(below, "/")))
		}
	}
	return nil
}

// placements returns the mounts of a container that are made before libcontainer mounts anything: the first
// ones, up to a mount that libcontainer's mounts could hide, or that has propagation. That mount and all later
// ones are left to libcontainer.
func placements(plan *pod.Plan, c *pod.Container, input *specInput) []volumes.Placement {
	mounts := specMounts(plan, &pod.Container{Privileged: c.Privileged, TerminationMessagePath: c.TerminationMessagePath}, *input)
	var list []volumes.Placement
	for i, m := range c.Mounts {
		if m.Propagation != "" || m.Path == "/" || slices.ContainsFunc(mounts, func(o specs.Mount) bool {
			return Within(o.Destination, m.Path) || Within(m.Path, o.Destination)
		}) {
			break
		}
		options := mountOptions(plan, m, input.recursive)
		list = append(list, volumes.Placement{Source: input.sources[i], Target: m.Path, Options: options,
			ReadOnly: slices.Contains(options, "ro"), Recursive: slices.Contains(options, "rro")})
	}
	return list
}

// bindOwnFiles mounts podrun's own files in a container and returns their paths. It mounts only at paths that
// have no other mount at or around them, where the order of mounts makes no difference. The rest is left to
// libcontainer: paths behind links of the image, and /dev, which it checks for. owner is the pod's root.
func bindOwnFiles(plan *pod.Plan, c *pod.Container, input *specInput, owner int) (paths []string) {
	if rootPropagation(c) != "rprivate" || slices.ContainsFunc(c.Mounts, func(m pod.Mount) bool { return m.Path == "/" }) {
		return nil
	}
	all := specMounts(plan, c, *input)
	for i, m := range all {
		around := slices.Concat(all[:i], all[i+1:])
		root, target := input.rootfs, m.Destination
		if path.Dir(target) == "/dev" { // the container's own, with everything in it
			root, target = input.dev, "/"+path.Base(target)
			around = slices.DeleteFunc(around, func(o specs.Mount) bool { return o.Destination == "/dev" && o.Source == input.dev })
		}
		if !slices.Contains([]string{input.sys, input.hosts, input.hostname, input.resolv, input.terminationLog}, m.Source) || m.Type != "bind" ||
			slices.ContainsFunc(around, func(o specs.Mount) bool { return Within(m.Destination, o.Destination) }) {
			continue
		}
		placement := volumes.Placement{Source: m.Source, Target: target, Options: m.Options, ReadOnly: slices.Contains(m.Options, "ro")}
		if volumes.Place(root, owner, []volumes.Placement{placement}) == 1 {
			paths = append(paths, m.Destination)
		}
	}
	return paths
}

// Within reports whether path is other or is inside of it.
func Within(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

// stageSources returns the source of each of a container's mounts, in the order of the Plan. Parts of
// volumes and paths of the host are opened, checked, and then bound at a staging path, so that a concurrent
// rename makes no difference. In the other sources only podrun can rename anything.
func (x *Container) stageSources(s *sandbox.Sandbox, vars map[string]string) ([]string, error) {
	var sources []string
	for i, m := range x.Plan.Mounts {
		v := s.Volume(m.Volume)
		if v == nil {
			return nil, sandbox.NewConfigError(fmt.Errorf("cannot find volume %q to mount into container %q", m.Volume, x.Plan.Name))
		}
		sub, err := subPath(m, vars)
		if err != nil {
			return nil, sandbox.NewConfigError(err)
		}
		source := s.VolumePath(v)
		if s.Backing(v).Kind == pod.HostPath || sub != "" {
			source = filepath.Join(s.StagingDir(x.ID()), strconv.Itoa(i))
			if err := s.BindVolume(v, sub, source); err != nil {
				return nil, x.mountError(m, sub, err)
			}
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// mountError returns the kubelet's error for a part of a volume that cannot be mounted.
func (x *Container) mountError(m pod.Mount, sub string, err error) error {
	if sub == "" {
		return fmt.Errorf("mount volume %q: %w", m.Volume, err)
	}
	return sandbox.NewConfigError(fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w", m.Volume, x.Plan.Name, err))
}

// subPath returns the part of a volume that a mount shows, "" for all of it (kubelet: makeMounts in
// pkg/kubelet/kubelet_pods.go).
func subPath(m pod.Mount, vars map[string]string) (string, error) {
	if m.SubPathExpr == "" {
		return m.SubPath, nil
	}
	sub, unknown := environ.ExpandKnown(m.SubPathExpr, vars)
	switch {
	case unknown != "":
		return "", fmt.Errorf("missing value for %q", unknown)
	case path.IsAbs(sub):
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	case slices.Contains(strings.Split(sub, "/"), ".."):
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	return sub, nil
}

// volumeMounts returns those mounts of volumes in a container that are not made yet.
func volumeMounts(plan *pod.Plan, c *pod.Container, input specInput) []specs.Mount {
	var list []specs.Mount
	for i, m := range c.Mounts {
		if i < input.premounted {
			continue
		}
		mount := specs.Mount{Destination: m.Path, Type: "bind", Source: input.sources[i], Options: append([]string{"rbind", propagation(m)}, mountOptions(plan, m, input.recursive)...)}
		list = append(list, mount)
	}
	return list
}

func propagation(m pod.Mount) string {
	switch m.Propagation {
	case pod.HostToContainer:
		return "rslave"
	case pod.Bidirectional:
		return "rshared"
	}
	return "rprivate"
}

// mountOptions returns the options of a mount. Volumes get nosuid and nodev; for paths of the host the
// host's own options apply.
func mountOptions(plan *pod.Plan, m pod.Mount, recursive bool) []string {
	var v pod.Volume
	for i := range plan.Volumes {
		if plan.Volumes[i].Name == m.Volume {
			v = plan.Volumes[i]
		}
	}
	options := slices.Clone(m.Options)
	add := func(words ...string) {
		for _, w := range words {
			if !slices.Contains(options, w) {
				options = append(options, w)
			}
		}
	}
	if v.Kind != pod.HostPath {
		add("nosuid", "nodev")
	}
	if v.Kind == pod.ImageVolume { // KEP-4639
		add("noexec")
	}
	switch {
	case m.Recursive != "" && recursive:
		add("rro")
	case m.ReadOnly || v.ReadOnly || v.Kind == pod.Files || v.Kind == pod.ImageVolume:
		add("ro")
	}
	return options
}

// rootPropagation returns the propagation of the root mount that the container's mounts need.
func rootPropagation(c *pod.Container) string {
	best := "rprivate"
	for _, m := range c.Mounts {
		switch p := propagation(m); {
		case p == "rshared":
			return p
		case p == "rslave":
			best = p
		}
	}
	return best
}

// errNoRecursive means that this kernel cannot make recursive read-only mounts.
var errNoRecursive = errors.New("recursive read-only mounts need Linux 5.12: use recursiveReadOnly: IfPossible")

// checkMountable returns an error if the kernel cannot make one of the container's mounts.
func checkMountable(c *pod.Container, recursive bool) error {
	for _, m := range c.Mounts {
		if m.Recursive == pod.RecursiveEnabled && !recursive {
			return sandbox.NewConfigError(fmt.Errorf("failed to resolve recursive read-only mode: %w", errNoRecursive))
		}
	}
	return nil
}

// exposeRootfs returns the path of a container's root file system. In a pod with hostUsers: false it first
// binds the root file system, with its mounts, where the pod's ids can reach it.
func (x *Container) exposeRootfs(s *sandbox.Sandbox, root string) (string, error) {
	if s.Plan.Users == nil {
		return root, nil
	}
	if err := s.ChownToPod(root); err != nil {
		return "", err
	}
	open, err := volumes.MountTraversable()
	if err != nil {
		return "", err
	}
	f, err := volumes.OpenVolume(root)
	if err != nil {
		return "", err
	}
	defer f.Close()
	place := filepath.Join(open, x.ID())
	return place, volumes.Bind(f, place)
}

// unexposeRootfs undoes exposeRootfs, even one that was completed only in part.
func (x *Container) unexposeRootfs(s *sandbox.Sandbox) error {
	if s.Plan.Users == nil {
		return nil
	}
	open, err := volumes.MountTraversable()
	if err != nil {
		return err
	}
	return volumes.UnmountTree(filepath.Join(open, x.ID()))
}
