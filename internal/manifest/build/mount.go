package build

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// mounts returns a container's mounts, sorted so that none hides an earlier one, with the file of its
// service account.
func (b *builder) mounts() []pod.Mount {
	var sorted []pod.Mount
	for _, m := range b.c.VolumeMounts {
		mount := pod.Mount{Volume: m.Name, Path: podutil.MountPoint(m.MountPath), ReadOnly: m.ReadOnly, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr, Options: m.BindMountOptions}
		if p := ptr.Deref(m.MountPropagation, corev1.MountPropagationNone); p != corev1.MountPropagationNone {
			mount.Propagation = pod.Propagation(p)
		}
		if r := ptr.Deref(m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled); r != corev1.RecursiveReadOnlyDisabled {
			mount.Recursive = pod.RecursiveReadOnly(r)
		}
		sorted = append(sorted, mount)
	}
	if account := b.account(); account != nil {
		sorted = append(sorted, *account)
	}
	slices.SortStableFunc(sorted, func(a, b pod.Mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), strings.Compare(a.Path, b.Path))
	})
	return sorted
}

// The files of its service account in every container: only the namespace. There is no token, as there is no
// API server.
const accountVolume = "kube-api-access" // no volume of a manifest: see serviceAccountVolume

// account returns the mount of these files, unless the manifest disables it or mounts something else there.
func (b *builder) account() *pod.Mount {
	if !automountServiceAccount(b.pod) || slices.ContainsFunc(b.c.VolumeMounts, func(m corev1.VolumeMount) bool { return podutil.MountPoint(m.MountPath) == pod.ServiceAccountPath }) {
		return nil
	}
	return &pod.Mount{Volume: serviceAccountVolume(b.pod), Path: pod.ServiceAccountPath, ReadOnly: true}
}

func automountServiceAccount(p *corev1.Pod) bool {
	return ptr.Deref(p.Spec.AutomountServiceAccountToken, true)
}

// serviceAccountVolume returns a name that no volume of the manifest has.
func serviceAccountVolume(p *corev1.Pod) string {
	name := accountVolume
	for i := 2; slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }); i++ {
		name = accountVolume + "-" + strconv.Itoa(i)
	}
	return name
}

// serviceAccountFiles returns the volume that account mounts.
func serviceAccountFiles(p *corev1.Pod) pod.Volume {
	item := pod.FileItem{Path: "namespace", Text: p.Namespace, Mode: 0o644}
	return pod.Volume{Name: serviceAccountVolume(p), Kind: pod.Files,
		Sources: []pod.FileSource{{Kind: pod.FromPod, Mode: 0o644, Items: []pod.FileItem{item}}}}
}
