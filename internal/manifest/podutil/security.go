package podutil

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// AppArmorProfile returns the effective profile of a container: its own, else the old annotation's,
// else the pod's (GetProfile in pkg/security/apparmor); nil is none.
func AppArmorProfile(p *corev1.Pod, c *corev1.Container) *corev1.AppArmorProfile {
	if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		return sc.AppArmorProfile
	}
	if profile := AppArmorFromAnnotation(p, c.Name); profile != nil {
		return profile
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		return sc.AppArmorProfile
	}
	return nil
}

// AppArmorFromAnnotation returns the profile that the old annotation names for a container, or nil.
func AppArmorFromAnnotation(p *corev1.Pod, container string) *corev1.AppArmorProfile {
	value := p.Annotations[AppArmorAnnotationPrefix+container]
	name, local := strings.CutPrefix(value, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case local:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	case value == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case value == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	}
	return nil
}

// AppArmorAnnotationPrefix begins the old annotation with a container's AppArmor profile.
const AppArmorAnnotationPrefix = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// SeccompProfile returns the effective profile of a container: its own, else the pod's; nil is the runtime's
// default.
func SeccompProfile(p *corev1.Pod, c *corev1.Container) *corev1.SeccompProfile {
	if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
		return sc.SeccompProfile
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		return sc.SeccompProfile
	}
	return nil
}

// LocalSeccompProfiles returns the names of the user's own profiles that a Pod requests: clean paths below
// the directory of profiles.
func LocalSeccompProfiles(p *corev1.Pod) []string {
	var names []string
	for c := range Containers(&p.Spec) {
		if name, ok := LocalSeccompProfile(p, c); ok {
			names = append(names, name)
		}
	}
	return names
}

// LocalSeccompProfile returns the name of the user's own seccomp profile that a container requests.
func LocalSeccompProfile(p *corev1.Pod, c *corev1.Container) (string, bool) {
	profile := SeccompProfile(p, c)
	if profile == nil || profile.Type != corev1.SeccompProfileTypeLocalhost || profile.LocalhostProfile == nil {
		return "", false
	}
	return *profile.LocalhostProfile, true
}

// DefaultCapabilities are for a container in a user namespace that it shares with other pods. They are
// the 11 of podman, and NET_RAW: the ping of busybox needs a raw socket.
var DefaultCapabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL",
	"NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// AllCapabilities exist since Linux 5.9.
var AllCapabilities = sets.New(append(slices.Clone(DefaultCapabilities),
	"AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE",
	"DAC_READ_SEARCH", "IPC_LOCK", "IPC_OWNER", "LEASE", "LINUX_IMMUTABLE",
	"MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BROADCAST", "PERFMON",
	"SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT",
	"SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG",
	"WAKE_ALARM")...)
