package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/volumes"
)

// unmounted says that volumes could not be made: a line for each, in the kubelet's words.
// It is tried again.
type unmounted struct{ lines []string }

func (u unmounted) Error() string { return strings.Join(u.lines, "\n") }

func (u *unmounted) add(volume string, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	u.lines = append(u.lines, fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume, text))
}

// makeVolumes makes the pod's volumes, those that nothing mounts included. All are tried,
// so that all mistakes are told.
func (s *sandbox) makeVolumes() error {
	if slices.ContainsFunc(s.plan.Volumes, func(v pod.Volume) bool { return v.Kind == pod.Files }) {
		// Its own file system, which is never swapped out: the files may be secrets.
		if err := volumes.MountMemory(s.filesDir(), s.plan.FileLabel); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(s.plan.Volumes, func(v pod.Volume) bool { return v.Kind == pod.HostPath }) {
		if err := volumes.MountHost(s.hostDir(), []string{s.dir, s.store.RootfsDir()}); err != nil {
			return err
		}
	}
	errs := make([]error, len(s.plan.Volumes))
	makeAll := func(disk bool) {
		for i := range s.plan.Volumes {
			if v := &s.plan.Volumes[i]; onDisk(v) == disk {
				errs[i] = s.makeVolume(v)
			}
		}
	}
	// Directories of a disk and file systems in memory do not wait for each other.
	var mounted sync.WaitGroup
	mounted.Go(func() { makeAll(false) })
	makeAll(true)
	mounted.Wait()
	var bad unmounted
	for i, err := range errs {
		v := &s.plan.Volumes[i]
		if err == nil && s.bidirectional(v.Name) {
			err = s.share(v)
		}
		if err != nil {
			bad.add(v.Name, err)
		}
	}
	if len(bad.lines) > 0 {
		return bad
	}
	return nil
}

// onDisk says whether a volume is in a directory that somebody's disk has.
func onDisk(v *pod.Volume) bool {
	return slices.Contains([]pod.VolumeKind{pod.EmptyDir, pod.Ephemeral, pod.ClaimVolume, pod.HostPath}, v.Kind)
}

func (s *sandbox) makeVolume(v *pod.Volume) error {
	path := s.volumePath(v)
	switch v.Kind {
	case pod.EmptyDir, pod.Ephemeral:
		if err := volumes.MakeEmptyDir(path, emptyDirMode(v)); err != nil {
			return err
		}
		if err := s.relabel(v); err != nil {
			return err
		}
		return s.giveToGroup(path, v.Kind == pod.Ephemeral)
	case pod.EmptyDirMemory:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := volumes.MountTmpfs(path, v.SizeLimit, emptyDirMode(v), v.FileLabel); err != nil {
			return err
		}
		return s.giveToGroup(path, false)
	case pod.EmptyDirHugePages:
		if err := volumes.MountHugePages(path, v.PageSize, emptyDirMode(v), v.FileLabel); err != nil {
			return err
		}
		return s.giveToGroup(path, false)
	case pod.HostPath:
		f, err := s.openHostPath(v)
		if err != nil {
			return err
		}
		return f.Close()
	case pod.ClaimVolume:
		return s.takeClaim(v)
	case pod.ImageVolume:
		layers, err := s.ownLayers(v.Layers)
		if err == nil {
			_, err = volumes.MountRootfs(s.imageDir(v), layers, true, v.FileLabel)
		}
		return err
	case pod.Files:
		return s.writeFiles(v)
	}
	return fmt.Errorf("unknown kind %q", v.Kind)
}

// emptyDirMode is the kubelet's: it mounts a tmpfs without a mode, so that its root has the
// kernel's default, with the sticky bit.
func emptyDirMode(v *pod.Volume) uint32 {
	switch {
	case v.Mode != 0:
		return v.Mode
	case v.Kind == pod.EmptyDirMemory:
		return 0o1777
	}
	return 0o777
}

// giveToGroup gives a volume to the pod's own root, if it has one, and what is in it to its
// fsGroup.
func (s *sandbox) giveToGroup(path string, mayMatch bool) error {
	if err := s.own(path); err != nil {
		return err
	}
	g := s.plan.Group
	if g == nil {
		return nil
	}
	left, err := volumes.Group{ID: s.id(g.ID), OnRootMismatch: g.OnRootMismatch && mayMatch}.Apply(path)
	if left > 0 {
		s.addWarning(fmt.Sprintf("%d files of %s keep their group: they belong to users that the pod does not have", left, filepath.Base(path)))
	}
	return err
}

// takeClaim makes the directory of a claim, unless there is no such claim, or another pod
// has it for itself.
func (s *sandbox) takeClaim(v *pod.Volume) error {
	o, err := s.store.Object(pod.KindClaim, v.Claim)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("persistentvolumeclaim %q not found", v.Claim)
	}
	if err != nil {
		return err
	}
	if o.Claim != nil && slices.Contains(o.Claim.AccessModes, "ReadWriteOncePod") {
		if err := s.store.AcquireClaim(v.Claim, s.plan.UID); err != nil {
			return err
		}
	}
	path := s.volumePath(v)
	if err := volumes.MakeEmptyDir(path, 0o777); err != nil {
		return err
	}
	if v.ReadOnly { // the kubelet changes nothing of it
		return nil
	}
	if err := s.relabel(v); err != nil {
		return err
	}
	return s.giveToGroup(path, true)
}

// share lets the pod's containers see what one of them mounts in a volume.
func (s *sandbox) share(v *pod.Volume) error {
	path := s.volumePath(v)
	if v.Kind == pod.HostPath {
		f, err := s.openHostPath(v)
		if err != nil {
			return err
		}
		defer f.Close()
		path = s.sharedPath(v)
		if err := volumes.Bind(f, path); err != nil {
			return err
		}
		return volumes.ShareMount(path)
	}
	return volumes.Share(path)
}

// openHostPath refuses what only the user's supplementary groups open. The containers of a pod with
// a single user id stay in those groups: the kernel lets nobody leave any there.
func (s *sandbox) openHostPath(v *pod.Volume) (*os.File, error) {
	f, err := volumes.OpenHostPath(s.hostDir(), v.Path, volumes.HostPathType(v.PathType))
	if err != nil || groupsAllowed() {
		return f, err
	}
	if err := s.checkGroups(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkGroups returns an error if only a supplementary group opens a file of the host, and adds what
// helps against that.
func (s *sandbox) checkGroups(f *os.File) error {
	err := volumes.CheckGroups(s.hostDir(), f)
	if by := (*volumes.OpenedByGroup)(nil); errors.As(err, &by) {
		return fmt.Errorf("%w, which is refused for pods without subordinate ids: grant the user access, for example setfacl -m u:USER:rwX %s", err, by.Path)
	}
	return err
}

func (s *sandbox) bidirectional(volume string) bool { return bidirectional(s.plan, volume) }

// bidirectional says whether a container's mounts in a volume are seen by others.
func bidirectional(plan *pod.Plan, volume string) bool {
	for _, list := range [][]pod.Container{plan.InitContainers, plan.Containers} {
		for i := range list {
			if slices.ContainsFunc(list[i].Mounts, func(m pod.Mount) bool {
				return m.Volume == volume && m.Propagation == pod.Bidirectional
			}) {
				return true
			}
		}
	}
	return false
}

func (s *sandbox) filesDir() string                { return filepath.Join(s.dir, "files") }
func (s *sandbox) hostDir() string                 { return filepath.Join(s.dir, "host") }
func (s *sandbox) imageDir(v *pod.Volume) string   { return filepath.Join(s.dir, "images", v.Name) }
func (s *sandbox) sharedPath(v *pod.Volume) string { return filepath.Join(s.dir, "hostpaths", v.Name) }
func (s *sandbox) memoryPath(v *pod.Volume) string { return filepath.Join(s.dir, "volumes", v.Name) }
func (s *sandbox) stagingDir(id string) string     { return filepath.Join(s.dir, "mounts-"+id) }
func (s *sandbox) volumeNamed(name string) (v *pod.Volume) {
	for i := range s.plan.Volumes {
		if s.plan.Volumes[i].Name == name {
			v = &s.plan.Volumes[i]
		}
	}
	return v
}

// volumePath is where a volume is, in the supervisor's mount namespace.
func (s *sandbox) volumePath(v *pod.Volume) string {
	switch v.Kind {
	case pod.EmptyDirMemory, pod.EmptyDirHugePages:
		return s.memoryPath(v)
	case pod.HostPath:
		return v.Path
	case pod.ClaimVolume:
		return s.store.ClaimDir(v.Claim)
	case pod.ImageVolume:
		return filepath.Join(s.imageDir(v), volumes.MergedDir)
	case pod.Files:
		return filepath.Join(s.filesDir(), v.Name)
	}
	return filepath.Join(s.store.VolumesDir(), v.Name)
}

// unmountVolumes takes down what makeVolumes has mounted, whole or in part. Directories
// on disk are left to those who remove the pod.
func (s *sandbox) unmountVolumes() error {
	var errs []error
	for i := range s.plan.Volumes {
		v := &s.plan.Volumes[i]
		if s.bidirectional(v.Name) {
			if v.Kind == pod.HostPath {
				errs = append(errs, volumes.UnmountTree(s.sharedPath(v)))
			} else {
				errs = append(errs, volumes.Detach(s.volumePath(v)))
			}
		}
		switch v.Kind {
		case pod.EmptyDirMemory, pod.EmptyDirHugePages:
			errs = append(errs, volumes.Unmount(s.volumePath(v)))
		case pod.ImageVolume:
			errs = append(errs, volumes.UnmountRootfs(s.imageDir(v)))
		case pod.ClaimVolume:
			errs = append(errs, s.store.ReleaseClaim(v.Claim, s.plan.UID))
		}
	}
	return errors.Join(append(errs, volumes.UnmountTree(s.filesDir()), volumes.UnmountTree(s.hostDir()))...)
}

// bindPart binds a volume, or a part of it, on target.
func (s *sandbox) bindPart(v *pod.Volume, sub, target string) error {
	whole, err := s.openVolume(v)
	if err != nil {
		return err
	}
	defer whole.Close()
	if sub == "" {
		return volumes.Bind(whole, target)
	}
	part, err := volumes.OpenSubPath(whole, sub)
	if err != nil {
		return err
	}
	defer part.Close()
	if v.Kind == pod.HostPath && !groupsAllowed() {
		if err := s.checkGroups(part); err != nil {
			return err
		}
	}
	return volumes.Bind(part, target)
}

func (s *sandbox) openVolume(v *pod.Volume) (*os.File, error) {
	switch {
	case v.Kind != pod.HostPath:
		return volumes.OpenVolume(s.volumePath(v))
	case s.bidirectional(v.Name):
		return volumes.OpenVolume(s.sharedPath(v))
	}
	return s.openHostPath(v)
}
