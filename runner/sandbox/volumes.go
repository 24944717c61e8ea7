package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/volumes"
)

// VolumeErrors means that volumes could not be made. It has a line for each of them, in the kubelet's words.
// The operation is retried.
type VolumeErrors struct{ Lines []string }

func (u VolumeErrors) Error() string { return strings.Join(u.Lines, "\n") }

// Add adds a line for a volume that could not be made.
func (u *VolumeErrors) Add(volume string, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	u.Lines = append(u.Lines, fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume, text))
}

// makeVolumes makes the pod's volumes, including those that no container mounts. It tries all of them, to
// report all errors at once.
func (s *Sandbox) makeVolumes() error {
	if slices.ContainsFunc(s.Plan.Volumes, func(v pod.Volume) bool { return v.Kind == pod.Files }) {
		// A separate file system that is never swapped out: the files may be secrets.
		if err := volumes.MountMemory(s.filesDir(), s.Plan.FileLabel); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(s.Plan.Volumes, s.mayBeOnHost) {
		if err := volumes.MountHost(s.hostDir(), []string{s.Dir, s.Pod.RootfsDir()}); err != nil {
			return err
		}
	}
	errs := make([]error, len(s.Plan.Volumes))
	makeAll := func(disk bool) {
		for i := range s.Plan.Volumes {
			if v := &s.Plan.Volumes[i]; onDisk(v) == disk {
				errs[i] = s.makeVolume(v)
			}
		}
	}
	// Directories on disk and file systems in memory are made concurrently.
	var mounted sync.WaitGroup
	mounted.Go(func() { makeAll(false) })
	makeAll(true)
	mounted.Wait()
	var bad VolumeErrors
	for i, err := range errs {
		v := &s.Plan.Volumes[i]
		if err == nil && s.bidirectional(v.Name) {
			err = s.propagate(v)
		}
		if err != nil {
			bad.Add(v.Name, err)
		}
	}
	if len(bad.Lines) > 0 {
		return bad
	}
	return nil
}

// mayBeOnHost reports whether a volume is a path of the host, or a claim that may be bound to one.
func (s *Sandbox) mayBeOnHost(v pod.Volume) bool {
	return v.Kind == pod.HostPath || v.Kind == pod.ClaimVolume && s.Pod.HasPersistentVolumes()
}

// onDisk reports whether a volume is in a directory on disk.
func onDisk(v *pod.Volume) bool {
	return slices.Contains([]pod.VolumeKind{pod.EmptyDir, pod.Ephemeral, pod.ClaimVolume, pod.HostPath}, v.Kind)
}

func (s *Sandbox) makeVolume(v *pod.Volume) error {
	path := s.VolumePath(v)
	switch v.Kind {
	case pod.EmptyDir, pod.Ephemeral:
		if err := volumes.MakeDir(path, emptyDirMode(v)); err != nil {
			return err
		}
		if err := s.relabelVolume(v); err != nil {
			return err
		}
		return s.setOwner(path, v.Kind == pod.Ephemeral)
	case pod.EmptyDirMemory:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := volumes.MountTmpfs(path, v.SizeLimit, emptyDirMode(v), v.FileLabel); err != nil {
			return err
		}
		return s.setOwner(path, false)
	case pod.EmptyDirHugePages:
		if err := volumes.MountHugePages(path, v.PageSize, emptyDirMode(v), v.FileLabel); err != nil {
			return err
		}
		return s.setOwner(path, false)
	case pod.HostPath:
		f, err := s.openHostPath(v)
		if err != nil {
			return err
		}
		return f.Close()
	case pod.ClaimVolume:
		return s.makeClaim(v)
	case pod.ImageVolume:
		layers, err := s.Layers(v.Layers)
		if err == nil {
			_, err = volumes.MountRootfs(s.imageDir(v), layers, true, v.FileLabel)
		}
		return err
	case pod.Files:
		return s.WriteFiles(v)
	}
	return fmt.Errorf("unknown kind %q", v.Kind)
}

// emptyDirMode returns the kubelet's mode of an emptyDir. The kubelet mounts a tmpfs without a mode: its root
// then has the kernel's default, with the sticky bit.
func emptyDirMode(v *pod.Volume) uint32 {
	switch {
	case v.Mode != 0:
		return v.Mode
	case v.Kind == pod.EmptyDirMemory:
		return 0o1777
	}
	return 0o777
}

// setOwner gives a volume to the pod's own root, if there is one, and its content to the pod's fsGroup.
// persistent is true for claims and ephemeral volumes, to which fsGroupChangePolicy applies.
func (s *Sandbox) setOwner(path string, persistent bool) error {
	if err := s.ChownToPod(path); err != nil {
		return err
	}
	g := s.Plan.FSGroup
	if g == nil {
		return nil
	}
	left, err := volumes.Group{ID: s.MapID(g.ID), OnRootMismatch: g.OnRootMismatch && persistent}.Apply(path)
	if left > 0 {
		s.addWarning(fmt.Sprintf("%d files of %s keep their group: they belong to users that the pod does not have", left, filepath.Base(path)))
	}
	return err
}

// makeClaim makes the directory of a PersistentVolumeClaim, or opens its PersistentVolume. It fails if there
// is no such claim, if it is not bound, or if another pod uses it exclusively.
func (s *Sandbox) makeClaim(v *pod.Volume) error {
	o, err := s.bindClaim(v)
	if err != nil {
		return err
	}
	if slices.Contains(o.Claim.AccessModes, "ReadWriteOncePod") {
		if err := s.Pod.AcquireClaim(v.Claim, s.Plan.UID); err != nil {
			return err
		}
	}
	if bound := o.Claim.Volume; bound != nil {
		if err := s.checkPersistentVolume(v, bound); err != nil || !s.Pod.IsProvisioned(bound.PersistentVolume.Path) {
			return err
		}
	}
	if v.ReadOnly { // the kubelet changes nothing in it
		return nil
	}
	if err := s.relabelVolume(v); err != nil {
		return err
	}
	return s.setOwner(s.VolumePath(v), true)
}

// bindClaim binds a claim to a PersistentVolume that matches. If there is none, it makes the claim's directory;
// the lock of the objects keeps commands from binding the claim meanwhile.
func (s *Sandbox) bindClaim(v *pod.Volume) (*pod.Object, error) {
	lock, err := s.Pod.LockObjects()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	o, err := s.Pod.BindClaim(v.Claim)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("persistentvolumeclaim %q not found", v.Claim)
	case err != nil:
		return nil, fmt.Errorf("persistentvolumeclaim %q is not bound: %w", v.Claim, err)
	case o.Claim.Volume == nil:
		err = volumes.MakeDir(s.Pod.ClaimDir(v.Claim), 0o777)
	}
	return o, err
}

// checkPersistentVolume checks that a PersistentVolume can be mounted. As for a hostPath, its files keep
// their owners and labels, unless the node has made it for the claim.
func (s *Sandbox) checkPersistentVolume(v *pod.Volume, bound *pod.Object) error {
	if source := bound.PersistentVolume.Source; !bound.PersistentVolume.Mountable() {
		return fmt.Errorf("persistentvolume %q is of kind %s: podrun mounts hostPath and local", bound.Name, source)
	}
	f, err := s.openHostPath(hostPathOf(v, bound.PersistentVolume))
	if err != nil {
		return fmt.Errorf("persistentvolume %q: %w", bound.Name, err)
	}
	return f.Close()
}

// hostPathOf returns the volume of a claim that is bound to a PersistentVolume.
func hostPathOf(v *pod.Volume, bound *pod.PersistentVolume) *pod.Volume {
	return &pod.Volume{Name: v.Name, Kind: pod.HostPath, Path: bound.Path, PathType: bound.PathType}
}

// Backing returns the volume that has the files of v. For a claim that is bound to a PersistentVolume it is a
// path of the host, otherwise v itself. The binding stays as long as the pod exists.
func (s *Sandbox) Backing(v *pod.Volume) *pod.Volume {
	if v.Kind == pod.ClaimVolume {
		if bound, err := s.Pod.FindBoundVolume(v.Claim); err == nil && bound != nil {
			return hostPathOf(v, bound)
		}
	}
	return v
}

// propagate makes a volume a mount with shared propagation, so that the pod's other containers see what one of
// them mounts in it.
func (s *Sandbox) propagate(v *pod.Volume) error {
	v = s.Backing(v)
	path := s.VolumePath(v)
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

// openHostPath opens a path of the host. In a pod with a single user id it refuses paths to which only the
// user's supplementary groups give access: there the kernel lets no process leave its groups, so containers
// would have the same access.
func (s *Sandbox) openHostPath(v *pod.Volume) (*os.File, error) {
	f, err := volumes.OpenHostPath(s.hostDir(), v.Path, volumes.HostPathType(v.PathType))
	if err != nil || SetgroupsAllowed() {
		return f, err
	}
	if err := s.checkGroups(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkGroups returns an error if only a supplementary group gives access to a file of the host, and adds
// the hint.
func (s *Sandbox) checkGroups(f *os.File) error {
	err := volumes.CheckGroups(s.hostDir(), f)
	if by := (*volumes.OpenedByGroup)(nil); errors.As(err, &by) {
		return fmt.Errorf("%w, which is refused for pods without subordinate ids: grant the user access, for example setfacl -m u:USER:rwX %s", err, by.Path)
	}
	return err
}

func (s *Sandbox) bidirectional(volume string) bool { return IsBidirectional(s.Plan, volume) }

// IsBidirectional reports whether a container mounts the volume with mountPropagation Bidirectional: then the
// other containers see what it mounts in the volume.
func IsBidirectional(plan *pod.Plan, volume string) bool {
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

func (s *Sandbox) filesDir() string                { return filepath.Join(s.Dir, "files") }
func (s *Sandbox) hostDir() string                 { return filepath.Join(s.Dir, "host") }
func (s *Sandbox) imageDir(v *pod.Volume) string   { return filepath.Join(s.Dir, "images", v.Name) }
func (s *Sandbox) sharedPath(v *pod.Volume) string { return filepath.Join(s.Dir, "hostpaths", v.Name) }
func (s *Sandbox) memoryPath(v *pod.Volume) string { return filepath.Join(s.Dir, "volumes", v.Name) }

// StagingDir returns the directory where the mounts of a container are made before it starts.
func (s *Sandbox) StagingDir(id string) string { return filepath.Join(s.Dir, "mounts-"+id) }

// Volume returns the pod's volume of a name, or nil.
func (s *Sandbox) Volume(name string) (v *pod.Volume) {
	for i := range s.Plan.Volumes {
		if s.Plan.Volumes[i].Name == name {
			v = &s.Plan.Volumes[i]
		}
	}
	return v
}

// VolumePath returns the path of a volume in the supervisor's mount namespace.
func (s *Sandbox) VolumePath(v *pod.Volume) string {
	switch v.Kind {
	case pod.EmptyDirMemory, pod.EmptyDirHugePages:
		return s.memoryPath(v)
	case pod.HostPath:
		return v.Path
	case pod.ClaimVolume:
		if on := s.Backing(v); on.Kind == pod.HostPath {
			return on.Path
		}
		return s.Pod.ClaimDir(v.Claim)
	case pod.ImageVolume:
		return filepath.Join(s.imageDir(v), volumes.MergedDir)
	case pod.Files:
		return filepath.Join(s.filesDir(), v.Name)
	}
	return filepath.Join(s.Pod.VolumesDir(), v.Name)
}

// unmountVolumes unmounts what makeVolumes has mounted, in whole or in part. The removal of the pod removes
// directories on disk.
func (s *Sandbox) unmountVolumes() error {
	var errs []error
	for i := range s.Plan.Volumes {
		v := &s.Plan.Volumes[i]
		if s.bidirectional(v.Name) {
			if s.Backing(v).Kind == pod.HostPath {
				errs = append(errs, volumes.UnmountTree(s.sharedPath(v)))
			} else {
				errs = append(errs, volumes.Detach(s.VolumePath(v)))
			}
		}
		switch v.Kind {
		case pod.EmptyDirMemory, pod.EmptyDirHugePages:
			errs = append(errs, volumes.Unmount(s.VolumePath(v)))
		case pod.ImageVolume:
			errs = append(errs, volumes.UnmountRootfs(s.imageDir(v)))
		case pod.ClaimVolume:
			errs = append(errs, s.Pod.ReleaseClaim(v.Claim, s.Plan.UID))
		}
	}
	return errors.Join(append(errs, volumes.UnmountTree(s.filesDir()), volumes.UnmountTree(s.hostDir()))...)
}

// BindVolume binds a volume, or a part of it, at target.
func (s *Sandbox) BindVolume(v *pod.Volume, sub, target string) error {
	v = s.Backing(v)
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
	if v.Kind == pod.HostPath && !SetgroupsAllowed() {
		if err := s.checkGroups(part); err != nil {
			return err
		}
	}
	return volumes.Bind(part, target)
}

func (s *Sandbox) openVolume(v *pod.Volume) (*os.File, error) {
	switch {
	case v.Kind != pod.HostPath:
		return volumes.OpenVolume(s.VolumePath(v))
	case s.bidirectional(v.Name):
		return volumes.OpenVolume(s.sharedPath(v))
	}
	return s.openHostPath(v)
}
