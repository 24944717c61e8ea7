package build

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/resources"
	"github.com/podrun/podrun/internal/pod"
)

// volumeBuilder makes the volumes of a plan.
type volumeBuilder struct {
	pod         *corev1.Pod
	limit       int64 // the pod's memory limit, 0: none
	effective   resources.Effective
	allocatable corev1.ResourceList
	images      map[string]pod.Image // of image volumes, by VolumeImageKey
}

// volumes returns the pod's volumes, including those that nothing mounts.
func (b *volumeBuilder) volumes() ([]pod.Volume, error) {
	var list []pod.Volume
	for i := range b.pod.Spec.Volumes {
		v := &b.pod.Spec.Volumes[i]
		volume := pod.Volume{Name: v.Name}
		var err error
		switch {
		case v.EmptyDir != nil:
			err = b.emptyDir(v.EmptyDir, &volume)
		case v.HostPath != nil:
			volume.Kind, volume.Path, volume.PathType = pod.HostPath, path.Clean(v.HostPath.Path), string(ptr.Deref(v.HostPath.Type, ""))
		case v.PersistentVolumeClaim != nil:
			volume.Kind, volume.Claim, volume.ReadOnly = pod.ClaimVolume, v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly
		case v.Ephemeral != nil:
			volume.Kind = pod.Ephemeral
		case v.Image != nil:
			volume.Kind, volume.Image, volume.Layers = pod.ImageVolume, v.Image.Reference, b.images[podutil.VolumeImageKey(v.Name)].Layers
		default:
			volume.Kind, volume.Dirs = pod.Files, nestedMountPoints(b.pod, v.Name)
			volume.Sources, err = b.sources(v)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, volume)
	}
	if automountServiceAccount(b.pod) {
		list = append(list, serviceAccountFiles(b.pod))
	}
	return list, nil
}

// emptyDir builds an emptyDir volume. One in memory is no larger than the pod's limit or the memory
// that pods may use.
func (b *volumeBuilder) emptyDir(e *corev1.EmptyDirVolumeSource, volume *pod.Volume) (err error) {
	volume.Kind, volume.Mode = pod.EmptyDir, uint32(ptr.Deref(e.Mode, 0))
	switch {
	case podutil.IsHugePagesVolume(e):
		volume.Kind = pod.EmptyDirHugePages
		volume.PageSize, err = podutil.HugePagesMediumSize(&b.pod.Spec, e.Medium)
		return err
	case e.Medium != corev1.StorageMediumMemory:
		return nil
	}
	volume.Kind = pod.EmptyDirMemory
	volume.SizeLimit = minNonZero(b.limit, b.allocatable.Memory().Value())
	if e.SizeLimit != nil {
		volume.SizeLimit = minNonZero(e.SizeLimit.Value(), volume.SizeLimit)
	}
	return nil
}

// nestedMountPoints lists the directories in a volume of files on which other volumes are mounted. They
// cannot be made later (kubelet: MakeNestedMountpoints).
func nestedMountPoints(p *corev1.Pod, volume string) []string {
	var dirs []string
	for c := range podutil.Containers(&p.Spec) {
		for _, outer := range c.VolumeMounts {
			if outer.Name != volume || outer.SubPath != "" || outer.SubPathExpr != "" {
				continue
			}
			for _, inner := range c.VolumeMounts {
				below, ok := strings.CutPrefix(podutil.MountPoint(inner.MountPath), podutil.MountPoint(outer.MountPath)+"/")
				if ok && !strings.HasPrefix(below, "..") && !slices.Contains(dirs, below) {
					dirs = append(dirs, below)
				}
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// sources returns the sources of a volume of files.
func (b *volumeBuilder) sources(v *corev1.Volume) ([]pod.FileSource, error) {
	switch {
	case v.ConfigMap != nil:
		c := v.ConfigMap
		return []pod.FileSource{fromObject(pod.FromConfigMap, c.Name, c.Optional, c.Items, c.DefaultMode, c.DefaultUser)}, nil
	case v.Secret != nil:
		s := v.Secret
		return []pod.FileSource{fromObject(pod.FromSecret, s.SecretName, s.Optional, s.Items, s.DefaultMode, s.DefaultUser)}, nil
	case v.DownwardAPI != nil:
		source, err := b.downward(v.DownwardAPI.Items, v.DownwardAPI.DefaultMode, v.DownwardAPI.DefaultUser)
		return []pod.FileSource{source}, err
	case v.Projected == nil:
		return nil, nil
	}
	var list []pod.FileSource
	p := v.Projected
	for _, s := range p.Sources {
		switch {
		case s.ConfigMap != nil:
			list = append(list, fromObject(pod.FromConfigMap, s.ConfigMap.Name, s.ConfigMap.Optional, s.ConfigMap.Items, p.DefaultMode, p.DefaultUser))
		case s.Secret != nil:
			list = append(list, fromObject(pod.FromSecret, s.Secret.Name, s.Secret.Optional, s.Secret.Items, p.DefaultMode, p.DefaultUser))
		case s.DownwardAPI != nil:
			source, err := b.downward(s.DownwardAPI.Items, p.DefaultMode, p.DefaultUser)
			if err != nil {
				return nil, err
			}
			list = append(list, source)
		}
	}
	return list, nil
}

func fromObject(kind pod.FileSourceKind, name string, optional *bool, items []corev1.KeyToPath, mode *int32, user *int64) pod.FileSource {
	s := pod.FileSource{Kind: kind, Name: name, Optional: ptr.Deref(optional, false), Mode: modeOf(nil, mode), User: userOf(nil, user)}
	for _, i := range items {
		s.Items = append(s.Items, pod.FileItem{Key: i.Key, Path: path.Clean(i.Path), Mode: modeOf(i.Mode, mode), User: userOf(i.User, user)})
	}
	return s
}

// downward returns files with the values of a pod's own fields.
func (b *volumeBuilder) downward(items []corev1.DownwardAPIVolumeFile, mode *int32, user *int64) (pod.FileSource, error) {
	s := pod.FileSource{Kind: pod.FromPod, Mode: modeOf(nil, mode), User: userOf(nil, user)}
	refs := builder{pod: b.pod, c: &corev1.Container{}, effective: b.effective, allocatable: b.allocatable}
	for _, i := range items {
		var text string
		var err error
		if i.FieldRef != nil {
			text, err = volumeFieldValue(b.pod, i.FieldRef.FieldPath)
		} else {
			text, err = refs.resourceValue(i.ResourceFieldRef)
		}
		if err != nil {
			return s, err
		}
		s.Items = append(s.Items, pod.FileItem{Text: text, Path: path.Clean(i.Path), Mode: modeOf(i.Mode, mode), User: userOf(i.User, user)})
	}
	return s, nil
}

// volumeFieldValue returns the value of a field of the pod in the form of a file (kubelet: pkg/fieldpath).
func volumeFieldValue(p *corev1.Pod, fieldPath string) (string, error) {
	switch fieldPath {
	case "metadata.labels":
		return keyValueLines(p.Labels), nil
	case "metadata.annotations":
		return keyValueLines(p.Annotations), nil
	}
	return fieldValue(p, fieldPath)
}

// keyValueLines returns a line key="value" for each entry.
func keyValueLines(m map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(list, "\n")
}

func modeOf(set, fallback *int32) uint32 {
	return uint32(ptr.Deref(cmp.Or(set, fallback), 0o644))
}

func userOf(set, fallback *int64) int {
	return int(ptr.Deref(cmp.Or(set, fallback), 0))
}
