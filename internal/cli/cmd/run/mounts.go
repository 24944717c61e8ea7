package run

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/report"
)

// setVolumes adds the volumes of -v and returns the claims of those with a name.
func (o *options) setVolumes(p *corev1.Pod, c *corev1.Container) (claims []*corev1.PersistentVolumeClaim, err error) {
	for _, word := range o.volumes {
		v := corev1.Volume{Name: volumeName(p)}
		parts := strings.SplitN(word, ":", 3)
		if len(parts) == 1 { // a volume without a name
			parts = []string{"", word}
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		source, mount := parts[0], corev1.VolumeMount{Name: v.Name, MountPath: path.Clean(parts[1])}
		if !path.IsAbs(parts[1]) {
			return nil, usageErrorf("-v %s: %q is not an absolute path in the container", word, parts[1])
		}
		if len(parts) == 3 {
			if mount.ReadOnly, err = o.mountOptions(word, parts[2]); err != nil {
				return nil, err
			}
		}
		switch {
		case v.EmptyDir != nil:
		case strings.HasPrefix(source, "/") || strings.HasPrefix(source, "."):
			if source, err = filepath.Abs(source); err != nil {
				return nil, err
			}
			v.HostPath = &corev1.HostPathVolumeSource{Path: source}
		default:
			if list := validation.IsDNS1123Subdomain(source); len(list) > 0 {
				return nil, usageErrorf("-v %s: %q is neither a path, which begins with / or ., nor the name of a volume: %s", word, source, list[0])
			}
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: source}
			if !slices.ContainsFunc(claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == source }) {
				claims = append(claims, newClaim(source, o.env.NamespaceFlag))
			}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	return claims, nil
}

// mountOptions reads the options of -v.
func (o *options) mountOptions(word, list string) (readOnly bool, err error) {
	for option := range strings.SplitSeq(list, ",") {
		switch option {
		case "ro":
			readOnly = true
		case "rw":
		case "z", "Z": // podman relabels the files only where SELinux is enabled
			if _, selinux := o.env.Deps.SecurityModules(); selinux.Enabled {
				return false, report.New(report.Usage, "chcon -R -t container_file_t PATH sets it", "-v %s: podrun does not change the SELinux label of files", word)
			}
		default:
			return false, usageErrorf("-v %s: unknown option %q: use ro, rw, z or Z", word, option)
		}
	}
	return readOnly, nil
}

// newClaim returns the claim of a volume. podrun does not enforce its size.
func newClaim(name, namespace string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// setDevices adds the devices of --device: a path by a hostPath volume, a name of CDI among the limits.
func (o *options) setDevices(p *corev1.Pod, c *corev1.Container) error {
	for _, word := range o.devices {
		if name := corev1.ResourceName(word); !strings.HasPrefix(word, "/") && podutil.IsDeviceName(name) {
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits[name] = resource.MustParse("1")
			continue
		}
		host, inside, err := parseDevice(word)
		if err != nil {
			return err
		}
		kind := corev1.HostPathCharDev
		st, err := os.Stat(host)
		switch {
		case err != nil:
			return report.New(report.Failure, "", "--device %s: %w", word, err)
		case st.Mode()&os.ModeDevice == 0:
			return usageErrorf("--device %s: %s is not a device", word, host)
		case st.Mode()&os.ModeCharDevice == 0:
			kind = corev1.HostPathBlockDev
		}
		v := corev1.Volume{Name: volumeName(p)}
		v.HostPath = &corev1.HostPathVolumeSource{Path: host, Type: &kind}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: inside})
	}
	return nil
}

// parseDevice parses HOST[:INSIDE][:ACCESS].
func parseDevice(word string) (host, inside string, err error) {
	parts := strings.Split(word, ":")
	access := "rwm"
	if last := parts[len(parts)-1]; len(parts) == 3 || len(parts) == 2 && !path.IsAbs(last) {
		access, parts = last, parts[:len(parts)-1]
	}
	host, inside = parts[0], parts[len(parts)-1]
	switch {
	case len(parts) > 2 || !path.IsAbs(host) || !path.IsAbs(inside):
		return "", "", usageErrorf("--device %s: use PATH[:PATH], or a name of CDI, vendor.com/class=name", word)
	case access != "rw" && access != "rwm":
		return "", "", usageErrorf("--device %s: access %q cannot be enforced: use rw", word, access)
	}
	return path.Clean(host), path.Clean(inside), nil
}
