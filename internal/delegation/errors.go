package delegation

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The hints name programs that the user may run; podrun itself runs none of them.
const (
	hintScope  = "start it in a delegated scope: systemd-run --user --scope -p Delegate=yes podrun …"
	hintMount  = "mount cgroup v2 on " + Mount + "; in a container, give it a private cgroup namespace with a writable " + Mount
	hintDropIn = `as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\nDelegate=cpu cpuset io memory pids\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log out and in again`
)

func noCgroups() error {
	return &NotDelegated{"this kernel has no cgroups", "use a kernel with CONFIG_CGROUPS"}
}

func (v hostView) versionOne(unified bool) error {
	const argument = "systemd.unified_cgroup_hierarchy=1"
	hint := "boot with cgroup v2: add " + argument + " to the kernel command line (GRUB: /etc/default/grub, then as root: update-grub), and reboot"
	if file, _ := v.cmdlineTxt(); file != "" {
		hint = fmt.Sprintf("boot with cgroup v2, as root: sed -i '1 s/$/ %s/' %s, and reboot", argument, file)
	} else if _, err := os.Stat(v.root + "/run/openrc"); err == nil {
		hint = "boot with cgroup v2: set rc_cgroup_mode=\"unified\" in /etc/rc.conf, and reboot"
	}
	if unified {
		return &NotDelegated{"this host uses cgroup v1 (hybrid: its v2 hierarchy has no controllers)", hint}
	}
	return &NotDelegated{"this host uses cgroup v1", hint}
}

func notMounted() error {
	return &NotDelegated{"no cgroup v2 file system is mounted on " + Mount, hintMount}
}

func mountedReadOnly() error {
	return &NotDelegated{Mount + " is mounted read-only", hintMount}
}

func outside(path string) error {
	return &NotDelegated{fmt.Sprintf("this process's cgroup %s lies outside of the mounted hierarchy", path), hintMount}
}

func (v hostView) foreign(dir string) error {
	if _, err := os.Stat(v.root + dir); os.IsNotExist(err) {
		return &NotDelegated{fmt.Sprintf("the cgroup %s does not exist", dir), hintMount}
	}
	return &NotDelegated{fmt.Sprintf("the cgroup %s is not delegated to this user", dir), hintScope}
}

func occupied(dir string, foreign int) error {
	return &NotDelegated{fmt.Sprintf("the cgroup %s holds %d other process(es)", dir, foreign), hintScope}
}

// Lacks returns a *NotDelegated that names the controllers that s does
// not have, or nil.
func (s Subtree) Lacks(controllers ...string) error { return host(nil).lacks(s, controllers) }

func (v hostView) lacks(s Subtree, controllers []string) error {
	missing := slices.DeleteFunc(slices.Clone(controllers), s.Has)
	if len(missing) == 0 {
		return nil
	}
	e := &NotDelegated{"the cgroup controller " + missing[0] + " is not delegated to this user", hintDropIn}
	if len(missing) > 1 {
		e.Why = "the cgroup controllers " + strings.Join(missing, ", ") + " are not delegated to this user"
	}
	if off := v.memoryDisabled(); off != nil && slices.Contains(missing, "memory") {
		return off
	}
	return e
}

// ProcessLimitNote describes what limits the number of processes of pods without the pids
// controller, as an appendix to the reason for its absence. The kernel counts processes by user,
// and does not limit root's.
func ProcessLimitNote(root bool) string {
	if root {
		return "the number of processes is not limited: one pod can use up the processes of the whole machine"
	}
	return "all pods of this user share one limit on processes: one pod can use it up, and the others can start none"
}
