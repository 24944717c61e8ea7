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
	var missing []string
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		if !v.exists("/proc/self/ns/" + ns) {
			missing = append(missing, ns)
		}
	}
	switch {
	case missing != nil && !v.exists("/proc/self"):
		return failure("/proc is not mounted", "as root: mount -t proc proc /proc")
	case missing != nil:
		return failure("this kernel has no namespaces of the kinds "+strings.Join(missing, ", "), "use a kernel with CONFIG_NAMESPACES and all kinds below it")
	}
	return fine("the kernel has every kind")
}

const (
	clone    = "kernel.unprivileged_userns_clone"             // Debian's switch, 1: allowed
	maximum  = "user.max_user_namespaces"                     // 0: none
	apparmor = "kernel.apparmor_restrict_unprivileged_userns" // Ubuntu's since 23.10, 1: only with a profile
)

// userns asks whether this user may make user namespaces, by making one; the files
// say why not. Root needs none.
func (v view) userns() Finding {
	if v.uid == 0 {
		return fine("not needed by root")
	}
	err := v.fork()
	if err == nil {
		return fine("allowed")
	}
	return v.explainUserns(err)
}

// explainUserns says what keeps this user from making the user namespace in which
// err was met, or from having capabilities in it.
func (v view) explainUserns(err error) Finding {
	switch {
	case v.sysctl(clone) == "0":
		return failure("unprivileged user namespaces are switched off ("+clone+" is 0)", persistent(clone, "1"))
	case v.sysctl(maximum) == "0":
		return failure("user namespaces are limited to none ("+maximum+" is 0)", persistent(maximum, "15000"))
	case v.sysctl(apparmor) == "1":
		return failure("AppArmor restricts user namespaces to programs with a profile ("+apparmor+" is 1)", profileCure(v.Program))
	case errors.Is(err, unix.ENOSPC):
		return failure("this user has used up its user namespaces, or they are nested too deep ("+maximum+" is "+v.sysctl(maximum)+")", persistent(maximum, "15000"))
	case v.confined() != "":
		return failure(fmt.Sprintf("the AppArmor profile %s forbids user namespaces: %v", v.confined(), err), "add the lines 'userns,' and 'capability,' to that profile in /etc/apparmor.d, or start podrun outside of it")
	case v.status("Seccomp") == "2":
		return failure(fmt.Sprintf("a system call filter forbids user namespaces: %v", err), "run podrun outside of this container, give the container a seccomp profile that allows them, or remove RestrictNamespaces= and SystemCallFilter= from the unit that starts podrun")
	}
	return failure(fmt.Sprintf("user namespaces are forbidden here: %v", err), "see what forbids them: dmesg, the security modules in /sys/kernel/security/lsm; use a kernel with CONFIG_USER_NS")
}

// persistent sets a sysctl now and after a restart.
func persistent(name, value string) string {
	return fmt.Sprintf("as root: echo %s=%s > /etc/sysctl.d/60-podrun.conf && sysctl --system", name, value)
}

// confined is the AppArmor profile that this process is held to, or "".
func (v view) confined() string {
	for _, file := range []string{"/proc/self/attr/apparmor/current", "/proc/self/attr/current"} {
		if text, ok := v.read(file); ok {
			if name, enforced := strings.CutSuffix(strings.TrimRight(text, "\x00\n"), " (enforce)"); enforced {
				return name
			}
		}
	}
	return ""
}

// profileCure makes the profile with which AppArmor lets podrun alone make user
// namespaces. Programs that podrun starts have it too: a profile of the kind
// "unconfined" is handed on to those that have none of their own.
func profileCure(program string) string {
	if program == "" {
		program = "/usr/local/bin/podrun"
	}
	return `as root: printf 'abi <abi/4.0>,\nprofile podrun "%s" flags=(unconfined) {\n  userns,\n}\n' ` + quote(program) +
		` > /etc/apparmor.d/podrun && apparmor_parser -r /etc/apparmor.d/podrun`
}

// quote makes one word of a shell's of s.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:,=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
