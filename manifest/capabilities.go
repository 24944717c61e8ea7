package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/podrun/podrun/pod"
)

// defaultCapabilities are those that a container has in a user namespace with other pods. They
// are the 11 of podman, and NET_RAW: the ping of busybox opens a raw socket and no other.
var defaultCapabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL",
	"NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// allCapabilities are those of Linux 5.9 and later.
var allCapabilities = sets.New(append(slices.Clone(defaultCapabilities),
	"AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE",
	"DAC_READ_SEARCH", "IPC_LOCK", "IPC_OWNER", "LEASE", "LINUX_IMMUTABLE",
	"MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BROADCAST", "PERFMON",
	"SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT",
	"SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG",
	"WAKE_ALARM")...)

// capabilities gives a container's set, as CAP_…, sorted. As in containerd, ALL is
// looked at before names, added ones before dropped ones, so that
// {drop: [ALL], add: [CHOWN]} leaves CHOWN.
func capabilities(sc *corev1.SecurityContext) []string {
	set := sets.New(defaultCapabilities...)
	if sc != nil && is(sc.Privileged) { // and then nothing is added or dropped, as in containerd
		set = allCapabilities.Clone()
	} else if sc != nil && sc.Capabilities != nil {
		add, drop := upper(sc.Capabilities.Add), upper(sc.Capabilities.Drop)
		if add.Has("ALL") {
			set = allCapabilities.Clone()
		}
		if drop.Has("ALL") {
			set = sets.New[string]()
		}
		set = set.Union(add).Difference(drop).Delete("ALL")
	}
	list := sets.List(set)
	for i := range list {
		list[i] = "CAP_" + list[i]
	}
	return list
}

// reachesFar says whether a container may try more than others of what the kernel lets a
// user namespace do: it must not be that of the user's other pods.
func reachesFar(c pod.Container) bool {
	return c.SeccompUnconfined || slices.ContainsFunc(c.Capabilities, func(name string) bool {
		return !slices.Contains(defaultCapabilities, strings.TrimPrefix(name, "CAP_"))
	})
}

func upper(list []corev1.Capability) sets.Set[string] {
	set := sets.New[string]()
	for _, c := range list {
		set.Insert(strings.ToUpper(string(c)))
	}
	return set
}
