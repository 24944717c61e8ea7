package manifest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePodSecurity(sc *corev1.PodSecurityContext, hostIPC bool, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, path)
	for i, gid := range sc.SupplementalGroups {
		errs = append(errs, id(gid, path.Child("supplementalGroups").Index(i), validation.IsValidGroupID)...)
	}
	if sc.FSGroup != nil {
		errs = append(errs, id(*sc.FSGroup, path.Child("fsGroup"), validation.IsValidGroupID)...)
	}
	if sc.FSGroupChangePolicy != nil {
		errs = append(errs, oneOf(*sc.FSGroupChangePolicy, path.Child("fsGroupChangePolicy"), corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)...)
	}
	if sc.SupplementalGroupsPolicy != nil {
		errs = append(errs, oneOf(*sc.SupplementalGroupsPolicy, path.Child("supplementalGroupsPolicy"), corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	if sc.SELinuxChangePolicy != nil {
		errs = append(errs, oneOf(*sc.SELinuxChangePolicy, path.Child("seLinuxChangePolicy"), corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)...)
	}
	errs = append(errs, validateSysctls(sc.Sysctls, hostIPC, path.Child("sysctls"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	return append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
}

func validateSecurity(sc *corev1.SecurityContext, path *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, path)
	if sc.ProcMount != nil {
		errs = append(errs, oneOf(*sc.ProcMount, path.Child("procMount"), corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
	}
	if sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation && sc.Privileged != nil && *sc.Privileged {
		errs = append(errs, field.Forbidden(path, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	if caps := sc.Capabilities; caps != nil {
		errs = append(errs, validateCapabilities(caps.Add, path.Child("capabilities", "add"))...)
		errs = append(errs, validateCapabilities(caps.Drop, path.Child("capabilities", "drop"))...)
	}
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
	return append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
}

// validateCapabilities refuses names that the kernel does not have. It is podrun's
// own rule: elsewhere they are dropped without a word.
func validateCapabilities(list []corev1.Capability, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range list {
		name := strings.ToUpper(string(c))
		switch bare, prefixed := strings.CutPrefix(name, "CAP_"); {
		case name == "ALL" || allCapabilities.Has(name):
		case prefixed && allCapabilities.Has(bare):
			errs = append(errs, field.Invalid(path.Index(i), string(c), "is written without CAP_: "+bare))
		default:
			errs = append(errs, field.Invalid(path.Index(i), string(c), "is not a Linux capability"))
		}
	}
	return errs
}

func validateIDs(user, group *int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		errs = append(errs, id(*user, path.Child("runAsUser"), validation.IsValidUserID)...)
	}
	if group != nil {
		errs = append(errs, id(*group, path.Child("runAsGroup"), validation.IsValidGroupID)...)
	}
	return errs
}

func id(number int64, path *field.Path, rule func(int64) []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range rule(number) {
		errs = append(errs, field.Invalid(path, number, msg))
	}
	return errs
}

// safeSysctls is the kubelet's list (pkg/kubelet/sysctl/safe_sysctls.go): they
// belong to the pod's own IPC or network namespace and harm nobody else.
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

// sysctlCharacters are those of what the safe ones can hold: numbers, and lists and ranges of them.
const sysctlCharacters = "-0123456789, \t"

// validateSysctls takes the safe list by its exact names, so that no trick with
// separators or "=" reaches another one (CVE-2022-0811).
func validateSysctls(sysctls []corev1.Sysctl, hostIPC bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, s := range sysctls {
		at, name := path.Index(i), sysctlName(s.Name)
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case !safeSysctls.Has(name):
			errs = append(errs, field.Forbidden(at.Child("name"), fmt.Sprintf("%q is not on the kubelet's list of safe sysctls", s.Name)))
		case hostIPC && strings.HasPrefix(name, "kernel."): // kubelet: pkg/kubelet/sysctl/allowlist.go
			errs = append(errs, field.Forbidden(at.Child("name"), fmt.Sprintf("%q is not allowed with the host's IPC", s.Name)))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(at.Child("name"), s.Name))
		}
		seen.Insert(name)
		if strings.Trim(s.Value, sysctlCharacters) != "" {
			errs = append(errs, field.Invalid(at.Child("value"), s.Value, "must be made of numbers"))
		}
	}
	return errs
}

// sysctlName turns net/ipv4/x into net.ipv4.x, as the kubelet does.
func sysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}
