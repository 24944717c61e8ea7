package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces asks whether the kernel was built with all that a pod needs.
func (v view) namespaces() Finding {
	f := Finding{Name: "namespaces", Fatal: true}
	var missing []string
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		if _, err := os.Lstat(v.root + "/proc/self/ns/" + ns); err != nil {
			missing = append(missing, ns)
		}
	}
	if missing != nil {
		f.Detail, f.Cure = "this kernel has no namespaces of the kinds "+strings.Join(missing, ", "), "use a kernel with CONFIG_NAMESPACES and all kinds below it"
		return f
	}
	f.OK, f.Detail = true, "the kernel has every kind"
	return f
}

const (
	clone    = "kernel.unprivileged_userns_clone"             // Debian's switch, 1: allowed
	maximum  = "user.max_user_namespaces"                     // 0: none
	apparmor = "kernel.apparmor_restrict_unprivileged_userns" // Ubuntu's since 23.10, 1: only with a profile
)

// userns asks whether this user may make user namespaces. Root needs none.
func (v view) userns() Finding {
	f := Finding{Name: "user namespaces", Fatal: true}
	if v.uid == 0 {
		f.OK, f.Detail = true, "not needed by root"
		return f
	}
	switch {
	case v.sysctl(clone) == "0":
		f.Detail, f.Cure = "unprivileged user namespaces are switched off", "as root: sysctl -w "+clone+"=1"
	case v.sysctl(maximum) == "0":
		f.Detail, f.Cure = "user namespaces are limited to none", "as root: sysctl -w "+maximum+"=15000"
	default:
		return v.tryUserns(f)
	}
	return f
}

// tryUserns settles what no file can tell: AppArmor may restrict this program, a
// filter (a container's) the system call.
func (v view) tryUserns(f Finding) Finding {
	restricted := v.sysctl(apparmor) == "1"
	if !restricted && v.status("Seccomp") != "2" {
		f.OK, f.Detail = true, "allowed"
		return f
	}
	err := v.fork()
	switch {
	case err == nil:
		f.OK, f.Detail = true, "allowed"
	case restricted:
		f.Detail = "AppArmor restricts user namespaces to programs with a profile"
		f.Cure = "give podrun a profile with the line 'userns,' in /etc/apparmor.d, or as root: sysctl -w " + apparmor + "=0"
	default:
		f.Detail = fmt.Sprintf("user namespaces are forbidden here: %v", err)
		f.Cure = "run podrun outside of this container, or give the container a seccomp profile that allows them"
	}
	return f
}

func (v view) sysctl(name string) string {
	text, _ := v.read("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return text
}

// status is a line of /proc/self/status.
func (v view) status(key string) string {
	text, _ := v.read("/proc/self/status")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// forkUserns makes a user and a mount namespace in a child that ends at once. The
// mount is what AppArmor forbids: it lets the namespace be made, and takes its
// capabilities away. The program does not exist, so ENOENT means that all before
// it went well.
func forkUserns() error {
	_, err := syscall.ForkExec("/proc/self/ns/none", []string{"none"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWUSER,
		Unshareflags: unix.CLONE_NEWNS,
		UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
