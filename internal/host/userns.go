package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces checks whether the kernel has all namespaces that a pod needs.
func (v prober) namespaces() Finding {
	var missing []string
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		if !v.exists("/proc/self/ns/" + ns) {
			missing = append(missing, ns)
		}
	}
	switch {
	case missing != nil && !v.exists("/proc/self"):
		return failureFinding("/proc is not mounted", "as root: mount -t proc proc /proc")
	case missing != nil:
		return failureFinding("this kernel has no namespaces of the kinds "+strings.Join(missing, ", "), "use a kernel with CONFIG_NAMESPACES and all kinds below it")
	}
	return okFinding("the kernel has every kind")
}

const (
	clone    = "kernel.unprivileged_userns_clone"             // Debian's switch, 1: allowed
	maximum  = "user.max_user_namespaces"                     // 0: none
	apparmor = "kernel.apparmor_restrict_unprivileged_userns" // Ubuntu's since 23.10, 1: only with a profile
)

// userns checks whether this user may make user namespaces, by making one unless the caller has done so.
// Files give the reason of a failure. Root needs none.
func (v prober) userns() Finding {
	if v.uid == 0 {
		return okFinding("not needed by root")
	}
	if v.UsernsEntered != nil && v.UsernsEntered() {
		return okFinding("allowed")
	}
	err := v.fork()
	if err == nil {
		return okFinding("allowed")
	}
	return v.explainUserns(err)
}

// explainUserns finds what prevents this user from making the user namespace in which err occurred,
// or from having capabilities in it.
func (v prober) explainUserns(err error) Finding {
	switch {
	case v.sysctl(clone) == "0":
		return failureFinding("unprivileged user namespaces are switched off ("+clone+" is 0)", persistSysctl(clone, "1"))
	case v.sysctl(maximum) == "0":
		return failureFinding("user namespaces are limited to none ("+maximum+" is 0)", persistSysctl(maximum, "15000"))
	case v.sysctl(apparmor) == "1":
		return failureFinding("AppArmor restricts user namespaces to programs with a profile ("+apparmor+" is 1)", profileHint(v.Program))
	case errors.Is(err, unix.ENOSPC):
		return failureFinding("this user has reached the limit of user namespaces, or they are nested too deep ("+maximum+" is "+v.sysctl(maximum)+")", persistSysctl(maximum, "15000"))
	case v.confined() != "":
		return failureFinding(fmt.Sprintf("the AppArmor profile %s forbids user namespaces: %v", v.confined(), err), "add the lines 'userns,' and 'capability,' to that profile in /etc/apparmor.d, or start podrun outside of it")
	case v.status("Seccomp") == "2":
		return failureFinding(fmt.Sprintf("a system call filter forbids user namespaces: %v", err), "run podrun outside of this container, give the container a seccomp profile that allows them, or remove RestrictNamespaces= and SystemCallFilter= from the unit that starts podrun")
	}
	return failureFinding(fmt.Sprintf("user namespaces are forbidden here: %v", err), "see what forbids them: dmesg, the security modules in /sys/kernel/security/lsm; use a kernel with CONFIG_USER_NS")
}

// persistSysctl returns the hint that sets a sysctl now and after a restart.
func persistSysctl(name, value string) string {
	return fmt.Sprintf("as root: echo %s=%s > /etc/sysctl.d/60-podrun.conf && sysctl --system", name, value)
}

// confined returns the AppArmor profile of this process, or "".
func (v prober) confined() string {
	for _, file := range []string{"/proc/self/attr/apparmor/current", "/proc/self/attr/current"} {
		if text, ok := v.read(file); ok {
			if name, enforced := strings.CutSuffix(strings.TrimRight(text, "\x00\n"), " (enforce)"); enforced {
				return name
			}
		}
	}
	return ""
}

// profileHint returns the hint: an AppArmor profile that lets only podrun make user namespaces.
// Programs that podrun starts have it, too: a profile of the kind "unconfined" is inherited by
// programs without a profile of their own.
func profileHint(program string) string {
	if program == "" {
		program = "/usr/local/bin/podrun"
	}
	return `as root: printf 'abi <abi/4.0>,\nprofile podrun "%s" flags=(unconfined) {\n  userns,\n}\n' ` + shellQuote(program) +
		` > /etc/apparmor.d/podrun && apparmor_parser -r /etc/apparmor.d/podrun`
}

// shellQuote quotes s as one word of a shell command.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// forkUserns makes a user and a mount namespace in a child that ends at once. A
// restriction by AppArmor permits the user namespace without capabilities, so the mount namespace fails. The program does not exist, so
// ENOENT means that everything before it succeeded.
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

// linger checks whether the user's pods outlive its last login, and start before the first: without
// it systemd ends all of a user's services and removes the runtime directory at the last logout
// (loginctl(1), enable-linger).
func (v prober) linger() Finding {
	switch {
	case v.uid == 0:
		return okFinding("not needed by root")
	case !v.systemd():
		return okFinding("not needed: systemd does not run here")
	case v.user != "" && v.exists("/var/lib/systemd/linger/"+v.user):
		return okFinding("pods of " + v.user + " keep running after a logout")
	}
	return warningFinding("pods of "+v.name()+" stop when it logs out, and do not start at boot", "loginctl enable-linger (or as root: loginctl enable-linger "+v.name()+")")
}
