package host

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
)

func TestAGoodHost(t *testing.T) {
	want := []Finding{
		{"kernel", OK, "Linux 6.1.0 aarch64", ""},
		{"namespaces", OK, "the kernel has every kind", ""},
		{"user namespaces", OK, "allowed", ""},
		{"seccomp", OK, "system call filters are available, for aarch64", ""},
		{"data directory", OK, "/home/dev/.local/share/podrun on ext4", ""},
		{"runtime directory", OK, "/run/user/1000/podrun on tmpfs", ""},
		{"id mapping tools", OK, "newuidmap and newgidmap are in /usr/bin", ""},
		{"subordinate ids", OK, "65536 ids", ""},
		{"resource limits", OK, "limits are enforced (cpu, memory, pids); a pod lives below /sys/fs/cgroup/x", ""},
		{"memory controller", OK, "the kernel counts memory", ""},
		{"cgroup features", OK, "cgroup.kill, freezing, OOM groups and pressure are available", ""},
		{"memory", OK, "3818 MiB", ""},
		{"disk space", OK, "20 GiB of 30 GiB are free for /home/dev/.local/share/podrun", ""},
		{"inodes", OK, "1000000 of 2000000 files are free for /home/dev/.local/share/podrun", ""},
		{"lingering", OK, "pods of dev keep running after a logout", ""},
		{"clock", OK, "the time is 2027-03-04 05:06 UTC", ""},
		{"tun device", OK, "/dev/net/tun can be opened", ""},
	}
	got := run(fake(t, debian()).probes(), Timeout)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := FirstFailure(got); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestUserAndIDs(t *testing.T) {
	denied := func() error { return unix.EPERM }
	none := func(v *prober) { v.fork = func() error { return unix.ENOSPC } }
	for _, tt := range []finding{
		{"Debian's switch is off", func(v *prober, f map[string]string) {
			f["/proc/sys/kernel/unprivileged_userns_clone"] = "0\n"
			v.fork = denied
		}, "user namespaces", Failure, "unprivileged user namespaces are switched off (kernel.unprivileged_userns_clone is 0)",
			"as root: echo kernel.unprivileged_userns_clone=1 > /etc/sysctl.d/60-podrun.conf && sysctl --system"},
		{"none may be made", func(v *prober, f map[string]string) { f["/proc/sys/user/max_user_namespaces"] = "0\n"; none(v) },
			"user namespaces", Failure, "user namespaces are limited to none (user.max_user_namespaces is 0)",
			"as root: echo user.max_user_namespaces=15000 > /etc/sysctl.d/60-podrun.conf && sysctl --system"},
		{"all are used up", func(v *prober, _ map[string]string) { none(v) },
			"user namespaces", Failure, "this user has reached the limit of user namespaces, or they are nested too deep (user.max_user_namespaces is 15000)", "user.max_user_namespaces=15000"},
		{"kernels without either switch", func(_ *prober, f map[string]string) {
			delete(f, "/proc/sys/user/max_user_namespaces")
			delete(f, "/proc/sys/kernel/unprivileged_userns_clone")
		}, "user namespaces", OK, "", ""},
		{"Ubuntu's AppArmor, without a profile", func(v *prober, f map[string]string) {
			f["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
			v.fork = denied
		}, "user namespaces", Failure, "AppArmor restricts user namespaces to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)",
			`as root: printf 'abi <abi/4.0>,\nprofile podrun "%s" flags=(unconfined) {\n  userns,\n}\n' /usr/local/bin/podrun > /etc/apparmor.d/podrun && apparmor_parser -r /etc/apparmor.d/podrun`},
		{"the same, of a program with a strange path", func(v *prober, f map[string]string) {
			f["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
			v.fork = denied
			v.Program = "/home/dev/it's here/podrun"
		}, "user namespaces", Failure, "AppArmor restricts user namespaces to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)",
			`}\n' '/home/dev/it'\''s here/podrun' > /etc/apparmor.d/podrun`},
		{"Ubuntu's AppArmor, with a profile", func(_ *prober, f map[string]string) {
			f["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
		}, "user namespaces", OK, "", ""},
		{"a profile that forbids them", func(v *prober, f map[string]string) {
			f["/proc/self/attr/current"] = "my-profile (enforce)\n"
			v.fork = denied
		}, "user namespaces", Failure, "the AppArmor profile my-profile forbids user namespaces: operation not permitted", "'userns,'"},
		{"a container's filter", func(v *prober, f map[string]string) {
			f["/proc/self/status"] = "NoNewPrivs:\t0\nSeccomp:\t2\n"
			v.fork = denied
		}, "user namespaces", Failure, "a system call filter forbids user namespaces: operation not permitted", "seccomp profile"},
		{"a unit's filter that allows them", func(_ *prober, f map[string]string) { f["/proc/self/status"] = "NoNewPrivs:\t0\nSeccomp:\t2\n" },
			"user namespaces", OK, "", ""},
		{"forbidden by something else", func(v *prober, f map[string]string) { v.fork = denied },
			"user namespaces", Failure, "user namespaces are forbidden here: operation not permitted", "/sys/kernel/security/lsm"},
		{"the caller has entered one", func(v *prober, _ map[string]string) {
			v.fork = denied
			v.UsernsEntered = func() bool { return true }
		}, "user namespaces", OK, "", ""},
		{"the caller could not enter one", func(v *prober, _ map[string]string) {
			v.fork = denied
			v.UsernsEntered = func() bool { return false }
		}, "user namespaces", Failure, "user namespaces are forbidden here: operation not permitted", "/sys/kernel/security/lsm"},
		{"root needs no user namespace", func(v *prober, f map[string]string) {
			v.uid = 0
			v.fork = denied
		}, "user namespaces", OK, "", ""},

		{"no newuidmap", func(_ *prober, f map[string]string) { delete(f, "/usr/bin/newuidmap") },
			"id mapping tools", Warning, "newuidmap is missing: a pod has a single user id", "apt-get install uidmap"},
		{"newgidmap in another directory", func(_ *prober, f map[string]string) {
			delete(f, "/usr/bin/newgidmap")
			f["/usr/local/bin/newgidmap"] = ""
		}, "id mapping tools", Warning, "newuidmap and newgidmap are in different directories: a pod has a single user id", "apt-get install uidmap"},
		{"an unprivileged newuidmap", func(v *prober, _ map[string]string) {
			v.tool = func(string) (privilegedProgram, error) { return privilegedProgram{mode: 0o755}, nil }
		}, "id mapping tools", Warning, "/usr/local/bin/newuidmap is neither setuid root nor has its capability: a pod has a single user id", "as root: chmod u+s /usr/local/bin/newuidmap"},
		{"on a file system mounted nosuid", func(v *prober, _ map[string]string) {
			v.tool = func(string) (privilegedProgram, error) {
				return privilegedProgram{mode: 0o755 | fs.ModeSetuid, nosuid: true, mount: "/usr"}, nil
			}
		}, "id mapping tools", Warning, "/usr/local/bin/newuidmap is on a file system mounted nosuid: a pod has a single user id", "as root: mount -o remount,bind,suid /usr"},
		{"a directory one may not look into", func(v *prober, _ map[string]string) {
			v.tool = func(string) (privilegedProgram, error) { return privilegedProgram{}, fs.ErrPermission }
		}, "id mapping tools", Warning, "look for newuidmap: permission denied", "apt-get install uidmap"},
		{"no new privileges", func(_ *prober, f map[string]string) { f["/proc/self/status"] = "NoNewPrivs:\t1\nSeccomp:\t0\n" },
			"id mapping tools", Warning, "no_new_privs is set: newuidmap cannot work, a pod has a single user id", "NoNewPrivileges="},
		{"root maps no ids", func(v *prober, f map[string]string) { v.uid = 0; delete(f, "/usr/bin/newuidmap") },
			"id mapping tools", OK, "", ""},

		{"no subuids", func(_ *prober, f map[string]string) {
			delete(f, "/etc/subuid")
			f["/etc/subgid"] = "other:100000:65536\n"
		},
			"subordinate ids", Warning, "/etc/subuid gives dev no ids: a pod has a single one, and images with more users are refused",
			"as root: usermod --add-subuids 165536-231071 --add-subgids 165536-231071 dev"},
		{"the first of this machine", func(_ *prober, f map[string]string) { delete(f, "/etc/subuid"); delete(f, "/etc/subgid") },
			"subordinate ids", Warning, "/etc/subuid gives dev no ids: a pod has a single one, and images with more users are refused",
			"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 dev"},
		{"no subgids", func(_ *prober, f map[string]string) { f["/etc/subgid"] = "other:100000:65536\n" },
			"subordinate ids", Warning, "/etc/subgid gives dev no ids: a pod has a single one, and images with more users are refused", "--add-subuids 231072-296607 "},
		{"few", func(_ *prober, f map[string]string) { f["/etc/subuid"] = "dev:100000:1000\n" },
			"subordinate ids", Warning, "/etc/subuid gives dev 1000 ids, images expect 65536", "usermod"},
		{"somebody else's too", func(_ *prober, f map[string]string) { f["/etc/subuid"] = "dev:165536:65536\nbob:200000:65536\n" },
			"subordinate ids", Warning, "/etc/subuid gives dev and bob the same ids (200000-265535): each can write the files of the other's pods",
			"remove the line of one of them from /etc/subuid as root; for new ids: usermod --add-subuids 265536-331071 --add-subgids 265536-331071 dev"},
		{"twice one's own", func(_ *prober, f map[string]string) { f["/etc/subgid"] = "dev:165536:65536\n1000:200000:65536\n" },
			"subordinate ids", Failure, "/etc/subgid gives dev ids twice: 200000-265535 overlaps 165536-231071, and the kernel maps neither", "remove one of the two lines from /etc/subgid"},
		{"a user without a name", func(v *prober, _ map[string]string) { v.user = "" },
			"subordinate ids", Warning, "/etc/subuid gives 1000 no ids: a pod has a single one, and images with more users are refused", "usermod"},
		{"root has all ids", func(v *prober, f map[string]string) { v.uid = 0; delete(f, "/etc/subuid") },
			"subordinate ids", OK, "", ""},
	} {
		t.Run(tt.name, tt.test)
	}
}

func TestKernelAndCgroups(t *testing.T) {
	without := func(name string, needed bool, err error) func(v *prober, _ map[string]string) {
		return func(v *prober, _ map[string]string) {
			v.calls = func() []syscallProbe { return []syscallProbe{{name, needed, "does this", err}} }
		}
	}
	unlimited := func(err error) func(v *prober, _ map[string]string) {
		return func(v *prober, _ map[string]string) {
			v.limit = func() (cgroupPlace, error) { return cgroupPlace{}, err }
		}
	}
	for _, tt := range []finding{
		{"an old kernel", without("openat2", true, unix.ENOSYS), "kernel", Failure,
			"this kernel (Linux 6.1.0 aarch64) has no openat2, which does this", "Linux 5.11 or later"},
		{"a filter of system calls", without("pidfd_open", true, unix.EPERM), "kernel", Failure,
			"pidfd_open is forbidden here (operation not permitted); it does this", "seccomp profile"},
		{"what one can do without", without("fsopen", false, unix.ENOSYS), "kernel", Note, "Linux 6.1.0 aarch64 has no fsopen, which does this", "Linux 5.14"},
		{"uname fails", func(v *prober, _ map[string]string) {
			v.uname = func() (string, string, error) { return "", "", unix.EFAULT }
		}, "kernel", OK, "", ""},
		{"a small kernel", func(_ *prober, f map[string]string) { delete(f, "/proc/self/ns/ipc"); delete(f, "/proc/self/ns/uts") },
			"namespaces", Failure, "this kernel has no namespaces of the kinds ipc, uts", "CONFIG_NAMESPACES"},
		{"no filters", func(_ *prober, f map[string]string) { delete(f, "/proc/sys/kernel/seccomp/actions_avail") },
			"seccomp", Failure, "this kernel has no system call filters", "CONFIG_SECCOMP_FILTER"},
		{"no seccomp", func(_ *prober, f map[string]string) { f["/proc/self/status"] = "NoNewPrivs:\t0\n" },
			"seccomp", Failure, "this kernel has no seccomp", "CONFIG_SECCOMP"},

		{"no delegation", unlimited(&delegation.NotDelegated{Why: "this host uses cgroup v1", Hint: "boot with cgroup v2"}),
			"resource limits", Warning, "limits are not enforced: this host uses cgroup v1; all pods of this user share one limit on processes: one pod can use it up, and the others can start none", "boot with cgroup v2"},
		{"cron before anybody has logged in", func(v *prober, f map[string]string) {
			unlimited(&delegation.NotDelegated{Why: "the cgroup /sys/fs/cgroup/y is not delegated to this user", Hint: "systemd-run --user"})(v, f)
			delete(f, "/run/user/1000/systemd/private")
		}, "resource limits", Warning, "limits are not enforced: the cgroup /sys/fs/cgroup/y is not delegated to this user; all pods of this user share one limit on processes: one pod can use it up, and the others can start none", "as root: loginctl enable-linger dev"},
		{"a controller is missing", func(v *prober, _ map[string]string) {
			v.limit = func() (cgroupPlace, error) {
				return cgroupPlace{delegation.Subtree{Path: "/sys/fs/cgroup/x", Controllers: []string{"memory", "pids"}}, ""}, nil
			}
		}, "resource limits", Warning, "some limits are not enforced: the cgroup controller cpu is not delegated to this user; enforced: memory, pids", "delegate.conf"},
		{"a Raspberry Pi", func(_ *prober, f map[string]string) {
			f["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu io pids\n"
			f["/boot/firmware/cmdline.txt"] = "console=tty1 rootwait\n"
		}, "memory controller", Warning, "the memory controller is switched off in this kernel: no memory limit can be enforced, not even by root",
			"as root: sed -i '1 s/$/ cgroup_enable=memory/' /boot/firmware/cmdline.txt, and reboot"},
		{"an older kernel's cgroups", func(_ *prober, f map[string]string) {
			delete(f, "/sys/fs/cgroup/x/cgroup.kill")
			delete(f, "/sys/fs/cgroup/x/memory.peak")
		}, "cgroup features", Note, "cgroups here have no cgroup.kill, memory.peak", "Linux 5.19"},
		{"no pressure", func(_ *prober, f map[string]string) { delete(f, "/sys/fs/cgroup/x/cpu.pressure") },
			"cgroup features", Note, "the kernel does not measure pressure (PSI)", "psi=1"},
		{"no cgroups to ask", unlimited(errors.New("none")), "cgroup features", OK, "", ""},
		{"no /proc", func(_ *prober, f map[string]string) { delete(f, "/proc/meminfo") },
			"memory", Warning, "read the machine's memory: /proc/meminfo has no MemTotal", "mount /proc"},
	} {
		t.Run(tt.name, tt.test)
	}
}

// The caller may start processes once Check has read the processes of its cgroup.
func TestAfterCgroupProbe(t *testing.T) {
	times := 0
	Check(Setup{Data: t.TempDir(), Runtime: t.TempDir(), AfterCgroupProbe: func() { times++ }})
	if times != 1 {
		t.Errorf("the caller was told %d times", times)
	}
}
