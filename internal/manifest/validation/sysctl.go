package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
)

// safeSysctls is the kubelet's list (pkg/kubelet/sysctl/safe_sysctls.go): they belong to the pod's own IPC
// or network namespace and affect no other pod.
var safeSysctls = sets.New(
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range",
	"net.ipv4.tcp_syncookies",
	"net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout",
	"net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
	"net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_notsent_lowat",
)

// sysctlCharacters are the characters in values of safe sysctls: numbers, and lists and ranges of them.
const sysctlCharacters = "-0123456789, \t"

// validateSysctls accepts exact names only, so that no trick with separators or "=" sets another sysctl
// (CVE-2022-0811): the safe list, and others of the pod's own namespaces, which UnsafeSysctls.Check refuses
// unless they are permitted.
func validateSysctls(sysctls []corev1.Sysctl, hostIPC bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, s := range sysctls {
		fieldPath, name := path.Index(i), sysctl.NormalizeName(s.Name)
		safe := safeSysctls.Has(name)
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(fieldPath.Child("name"), ""))
		case !safe && (!isSysctlName(name) || sysctlNamespace(name) == sysctl.UnknownNamespace):
			errs = append(errs, field.Forbidden(fieldPath.Child("name"), fmt.Sprintf("%q is neither on the kubelet's list of safe sysctls nor known to be namespaced", s.Name)))
		case hostIPC && sysctlNamespace(name) == sysctl.IPCNamespace: // kubelet: pkg/kubelet/sysctl/allowlist.go
			errs = append(errs, field.Forbidden(fieldPath.Child("name"), fmt.Sprintf("%q is not allowed with the host's IPC", s.Name)))
		case names.Has(name):
			errs = append(errs, field.Duplicate(fieldPath.Child("name"), s.Name))
		}
		names.Insert(name)
		if safe && strings.Trim(s.Value, sysctlCharacters) != "" {
			errs = append(errs, field.Invalid(fieldPath.Child("value"), s.Value, "must be made of numbers"))
		} else {
			errs = append(errs, validateNoControl(strings.ReplaceAll(s.Value, "\t", " "), fieldPath.Child("value"))...)
		}
	}
	return errs
}

// isSysctlName reports whether a normalized name has only elements that the kernel has: no empty one, and no
// separators or signs in them (IsValidSysctlName in pkg/apis/core/validation, without "/": a device of a pod
// has no dot in its name).
func isSysctlName(name string) bool {
	for element := range strings.SplitSeq(name, ".") {
		if element == "" || strings.Trim(element, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// sysctlNamespace returns the namespace of a pod that a sysctl belongs to, or UnknownNamespace: the user namespace
// is not the pod's own, and its host name has fields of its own.
func sysctlNamespace(name string) sysctl.Namespace {
	switch ns, _, _ := sysctl.GetNamespace(name); ns {
	case sysctl.IPCNamespace, sysctl.NetNamespace:
		return ns
	}
	return sysctl.UnknownNamespace
}

// UnsafeSysctls are the sysctls outside the safe list that pods may set: names, or beginnings of names that
// end in "*" (kubelet: --allowed-unsafe-sysctls).
type UnsafeSysctls []string

// ParseUnsafeSysctls reads such a list, whose entries may have several parts with commas between them
// (NewAllowlist in pkg/kubelet/sysctl).
func ParseUnsafeSysctls(patterns []string) (UnsafeSysctls, error) {
	var list UnsafeSysctls
	if len(patterns) == 0 {
		return nil, nil
	}
	for p := range strings.SplitSeq(strings.Join(patterns, ","), ",") {
		name := sysctl.NormalizeName(p)
		start, any := strings.CutSuffix(name, "*")
		if !isSysctlName(strings.TrimSuffix(start, ".")) || strings.HasSuffix(start, ".") && !any {
			return nil, fmt.Errorf("%q is no sysctl: use a name, or the beginning of one and *, such as kernel.msg*", p)
		}
		if sysctlNamespace(name) == sysctl.UnknownNamespace {
			return nil, fmt.Errorf("the sysctls %q are not known to be namespaced: use kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.*", p)
		}
		list = append(list, name)
	}
	return list, nil
}

// permits reports whether the list contains a sysctl.
func (u UnsafeSysctls) permits(name string) bool {
	for _, p := range u {
		if start, any := strings.CutSuffix(p, "*"); any && strings.HasPrefix(name, start) || p == name {
			return true
		}
	}
	return false
}

// Check refuses the sysctls of a valid Pod that are neither safe nor in the list.
func (u UnsafeSysctls) Check(p *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	for _, i := range u.Forbidden(p) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "securityContext", "sysctls").Index(i).Child("name"), fmt.Sprintf("%q is not on the kubelet's list of safe sysctls", p.Spec.SecurityContext.Sysctls[i].Name)))
	}
	return errs
}

// Forbidden returns the indexes of the sysctls of a Pod that are neither safe nor in the list.
func (u UnsafeSysctls) Forbidden(p *corev1.Pod) (indexes []int) {
	if p.Spec.SecurityContext == nil {
		return nil
	}
	for i, s := range p.Spec.SecurityContext.Sysctls {
		if name := sysctl.NormalizeName(s.Name); !safeSysctls.Has(name) && !u.permits(name) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
