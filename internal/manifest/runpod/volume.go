package runpod

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// volume mounts a volume, [PATH|NAME:]MOUNT[:OPTIONS].
func (c *Container) volume(word string) error {
	parts := strings.SplitN(word, ":", 3)
	m := mount{kind: "volume", target: parts[len(parts)-1]}
	if len(parts) > 1 {
		m.source, m.target = parts[0], parts[1]
		if strings.HasPrefix(m.source, "/") || strings.HasPrefix(m.source, ".") {
			m.kind = "bind"
		}
	}
	if len(parts) == 3 {
		for option := range strings.SplitSeq(parts[2], ",") {
			if err := m.volumeOption(c, option); err != nil {
				return err
			}
		}
	}
	return c.mount(m)
}

// volumeOption reads an option of -v.
func (m *mount) volumeOption(c *Container, option string) error {
	switch option {
	case "ro":
		m.readOnly = true
	case "rw", "rbind", "nocopy", "": // podrun copies nothing of the image into a volume
	case "z", "Z": // podman relabels the files only where SELinux is enabled
		return c.checkRelabel()
	default:
		if _, ok := propagations()[option]; !ok {
			return fmt.Errorf("unknown option %q: use ro, rw, z, Z, rslave or rshared", option)
		}
		m.propagation = option
	}
	return nil
}

// checkRelabel refuses a change of labels, which is not needed without SELinux.
func (c *Container) checkRelabel() error {
	if c.host.SELinux() {
		return errors.New("podrun does not change the SELinux label of files: chcon -R -t container_file_t PATH sets it")
	}
	return nil
}

// mount is a mount in the words of --mount.
type mount struct {
	kind, source, target string
	readOnly             bool
	propagation          string
	subPath              string
	size, mode           string // of a tmpfs
}

// propagations returns Kubernetes' modes by docker's words. Docker's modes without r are for the mount alone.
func propagations() map[string]corev1.MountPropagationMode {
	return map[string]corev1.MountPropagationMode{
		"": "", "private": "", "rprivate": "", "rslave": corev1.MountPropagationHostToContainer, "rshared": corev1.MountPropagationBidirectional,
	}
}

// mountOption mounts what --mount describes: type=bind|volume|tmpfs|image,source=…,target=…[,OPTION…].
func (c *Container) mountOption(word string) error {
	fields, err := csv.NewReader(strings.NewReader(word)).Read()
	if err != nil {
		return fmt.Errorf("%q is no list of key=value: %w", word, err)
	}
	m := mount{kind: "volume"}
	for _, field := range fields {
		if err := m.field(c, field); err != nil {
			return err
		}
	}
	return c.mount(m)
}

// field reads one word of --mount.
func (m *mount) field(c *Container, field string) (err error) {
	key, value, hasValue := strings.Cut(field, "=")
	on := !hasValue || value == "true" || value == "1"
	switch key {
	case "type":
		m.kind = value
	case "source", "src":
		m.source = value
	case "target", "destination", "dst":
		m.target = value
	case "ro", "readonly":
		m.readOnly = on
	case "rw":
		m.readOnly = !on
	case "bind-propagation":
		m.propagation = value
	case "volume-subpath", "image-subpath", "subpath":
		m.subPath = value
	case "tmpfs-size":
		m.size = value
	case "tmpfs-mode":
		m.mode = value
	case "relabel":
		return c.checkRelabel()
	case "volume-nocopy", "bind-create-src", "consistency": // podrun copies nothing of the image into a volume
	default:
		return fmt.Errorf("%q is refused: podrun has type, source, target, readonly, bind-propagation, tmpfs-size, tmpfs-mode and subpath", field)
	}
	return nil
}

// mount adds a mount to the container.
func (c *Container) mount(m mount) error {
	propagation, known := propagations()[m.propagation]
	switch {
	case m.target == "":
		return errors.New("the path in the container is missing")
	case !path.IsAbs(m.target):
		return fmt.Errorf("%q is not an absolute path in the container", m.target)
	case !known:
		return fmt.Errorf("the propagation is rprivate, rslave or rshared, not %q", m.propagation)
	}
	vm := corev1.VolumeMount{MountPath: path.Clean(m.target), ReadOnly: m.readOnly, SubPath: m.subPath}
	if propagation != "" {
		vm.MountPropagation = &propagation
	}
	var source corev1.VolumeSource
	switch m.kind {
	case "bind":
		if m.source == "" {
			return errors.New("the source of a bind mount is missing")
		}
		if !filepath.IsAbs(m.source) {
			m.source = filepath.Join(c.host.Dir, m.source)
		}
		source.HostPath = &corev1.HostPathVolumeSource{Path: filepath.Clean(m.source)}
	case "volume":
		if m.source == "" {
			source.EmptyDir = &corev1.EmptyDirVolumeSource{}
			break
		}
		if err := c.pod.claim(m.source); err != nil {
			return err
		}
		source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.source}
	case "tmpfs":
		memory, err := tmpfsSource(m.size, m.mode)
		if err != nil {
			return err
		}
		source.EmptyDir = memory
	case "image":
		source.Image = &corev1.ImageVolumeSource{Reference: m.source, PullPolicy: corev1.PullIfNotPresent}
	default:
		return fmt.Errorf("the type is bind, volume, tmpfs or image, not %q", m.kind)
	}
	c.addVolume(source, vm)
	return nil
}

// claim adds the claim of a named volume. podrun does not enforce its size.
func (p *Pod) claim(name string) error {
	if list := validation.IsDNS1123Subdomain(name); len(list) > 0 {
		return fmt.Errorf("%q is neither a path, which begins with / or ., nor the name of a volume: %s", name, list[0])
	}
	if slices.ContainsFunc(p.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name }) {
		return nil
	}
	p.Claims = append(p.Claims, &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	return nil
}

// tmpfs mounts a file system in memory, PATH[:OPTIONS].
func (c *Container) tmpfs(word string) error {
	target, list, _ := strings.Cut(word, ":")
	m := mount{kind: "tmpfs", target: target}
	for option := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "", "rw", "nosuid", "nodev", "exec", "rprivate", "tmpcopyup", "notmpcopyup":
		case "ro":
			m.readOnly = true
		case "size":
			m.size = value
		case "mode":
			m.mode = value
		default:
			return fmt.Errorf("the option %q has no counterpart: podrun has size, mode, rw and ro", option)
		}
	}
	return c.mount(m)
}

// tmpfsSource returns a volume in memory. size and mode are "" for the defaults.
func tmpfsSource(size, mode string) (*corev1.EmptyDirVolumeSource, error) {
	source := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if size != "" {
		n, err := parseSize(size)
		if err != nil {
			return nil, err
		}
		source.SizeLimit = resource.NewQuantity(n, resource.BinarySI)
	}
	if mode != "" {
		n, err := strconv.ParseInt(mode, 8, 32)
		if err != nil || n < 0 || n > 0o1777 {
			return nil, fmt.Errorf("%q is no mode: use octal digits, as in 1777", mode)
		}
		source.Mode = new(int32(n))
	}
	return source, nil
}

// shmSize sets the size of /dev/shm.
func (c *Container) shmSize(value string) error {
	return c.mount(mount{kind: "tmpfs", target: "/dev/shm", size: value})
}

// timezone mounts the rules of a time zone of this machine; "local" is the machine's own zone.
func (c *Container) timezone(zone string) error {
	file := "/etc/localtime"
	if zone != "local" {
		if path.IsAbs(zone) || path.Clean(zone) != zone || strings.HasPrefix(zone, "..") {
			return errors.New("use the name of a zone, such as Europe/Berlin, or local")
		}
		file = "/usr/share/zoneinfo/" + zone
	}
	kind := corev1.HostPathFile
	c.addVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: file, Type: &kind}}, corev1.VolumeMount{MountPath: "/etc/localtime", ReadOnly: true})
	return nil
}

// deviceKind returns the kind of a device of this machine.
func (c *Container) deviceKind(file string) (corev1.HostPathType, error) {
	mode, err := c.host.Stat(file)
	switch {
	case err != nil:
		return "", err
	case mode.IsDir() && strings.HasPrefix(file, "/dev/"): // of devices, as /dev/dri
		return corev1.HostPathDirectory, nil
	case mode&fs.ModeDevice == 0:
		return "", fmt.Errorf("%s is not a device", file)
	case mode&fs.ModeCharDevice == 0:
		return corev1.HostPathBlockDev, nil
	}
	return corev1.HostPathCharDev, nil
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
		return "", "", errors.New("use PATH[:PATH], or a name of CDI, vendor.com/class=name")
	case access != "rw" && access != "rwm":
		return "", "", fmt.Errorf("access %q cannot be enforced: use rw", access)
	}
	return path.Clean(host), path.Clean(inside), nil
}

// LabelClaim sets labels, KEY=VALUE, of a claim of the Pod; what cannot be a label is an annotation.
func (c *Container) LabelClaim(name string, labels []string) {
	i := slices.IndexFunc(c.pod.Claims, func(claim *corev1.PersistentVolumeClaim) bool { return claim.Name == name })
	if i < 0 {
		return
	}
	meta := &c.pod.Claims[i].ObjectMeta
	for _, word := range labels {
		key, value, _ := strings.Cut(word, "=")
		into := &meta.Annotations
		if len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			into = &meta.Labels
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[key] = value
	}
}
