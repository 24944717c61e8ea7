package host

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// debian is a host where everything is as it should be, for user dev (1000).
func debian() map[string]string {
	files := map[string]string{
		"/proc/self/status":                          "Name:\tpodrun\nNoNewPrivs:\t0\nSeccomp:\t0\n",
		"/proc/meminfo":                              "MemTotal:        3910244 kB\nMemFree:          120 kB\n",
		"/proc/sys/kernel/seccomp/actions_avail":     "kill_process kill_thread trap errno user_notif trace log allow\n",
		"/proc/sys/kernel/unprivileged_userns_clone": "1\n",
		"/proc/sys/user/max_user_namespaces":         "15000\n",
		"/etc/subuid":                                "other:100000:65536\ndev:165536:65536\n",
		"/etc/subgid":                                "dev:165536:65536\n",
		"/usr/bin/newuidmap":                         "",
		"/usr/bin/newgidmap":                         "",
	}
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		files["/proc/self/ns/"+ns] = ""
	}
	return files
}

func setuid(path string) (program, error) {
	_, err := os.Stat(path)
	return program{mode: 0o755 | fs.ModeSetuid}, err
}

// fake is a view of files, in which the user owns every file there is.
func fake(t *testing.T, files map[string]string) view {
	t.Helper()
	v := view{root: t.TempDir(), uid: 1000, user: "dev", path: []string{"/usr/local/bin"}, tool: setuid}
	for name, text := range files {
		path := v.root + name
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	v.fork = func() error { t.Error("forked without need"); return nil }
	v.limit = func() (delegation.Subtree, error) {
		return delegation.Subtree{Path: "/sys/fs/cgroup/x", Controllers: []string{"cpu", "memory", "pids"}}, nil
	}
	v.uname = func() (string, string, error) { return "6.1.0", "aarch64", nil }
	return v
}

func TestAGoodHost(t *testing.T) {
	want := []Finding{
		{"namespaces", true, true, "the kernel has every kind", ""},
		{"user namespaces", true, true, "allowed", ""},
		{"seccomp", true, true, "system call filters are available", ""},
		{"id mapping tools", true, false, "newuidmap and newgidmap are there", ""},
		{"subordinate ids", true, false, "65536 ids", ""},
		{"resource limits", true, false, "limits are enforced below /sys/fs/cgroup/x", ""},
		{"memory", true, false, "3818 MiB", ""},
		{"kernel", true, false, "Linux 6.1.0 aarch64", ""},
	}
	got := probes(fake(t, debian()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := Refusal(got); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestFindings(t *testing.T) {
	denied := func() error { return unix.EPERM }
	allowed := func() error { return nil }
	for _, tt := range []struct {
		name   string
		change func(v *view, files map[string]string)
		probe  string
		fatal  bool
		detail string // of the finding; OK means it is fine
		cure   string
	}{
		{"Debian's switch is off", func(_ *view, f map[string]string) { f["/proc/sys/kernel/unprivileged_userns_clone"] = "0\n" },
			"user namespaces", true, "unprivileged user namespaces are switched off", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"none may be made", func(_ *view, f map[string]string) { f["/proc/sys/user/max_user_namespaces"] = "0\n" },
			"user namespaces", true, "user namespaces are limited to none", "sysctl -w user.max_user_namespaces="},
		{"kernels without either switch", func(_ *view, f map[string]string) {
			delete(f, "/proc/sys/user/max_user_namespaces")
			delete(f, "/proc/sys/kernel/unprivileged_userns_clone")
		}, "user namespaces", true, "OK", ""},
		{"Ubuntu's AppArmor, without a profile", func(v *view, f map[string]string) {
			f["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
			v.fork = denied
		}, "user namespaces", true, "AppArmor restricts user namespaces to programs with a profile", "'userns,'"},
		{"Ubuntu's AppArmor, with a profile", func(v *view, f map[string]string) {
			f["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
			v.fork = allowed
		}, "user namespaces", true, "OK", ""},
		{"a container's filter", func(v *view, f map[string]string) {
			f["/proc/self/status"] = "NoNewPrivs:\t0\nSeccomp:\t2\n"
			v.fork = denied
		}, "user namespaces", true, "user namespaces are forbidden here: operation not permitted", "seccomp profile"},
		{"a unit's filter that allows them", func(v *view, f map[string]string) {
			f["/proc/self/status"] = "NoNewPrivs:\t0\nSeccomp:\t2\n"
			v.fork = allowed
		}, "user namespaces", true, "OK", ""},
		{"root needs no user namespace", func(v *view, f map[string]string) {
			v.uid = 0
			f["/proc/sys/user/max_user_namespaces"] = "0\n"
		}, "user namespaces", true, "OK", ""},
		{"a small kernel", func(_ *view, f map[string]string) { delete(f, "/proc/self/ns/ipc"); delete(f, "/proc/self/ns/uts") },
			"namespaces", true, "this kernel has no namespaces of the kinds ipc, uts", "CONFIG_NAMESPACES"},
		{"no seccomp", func(_ *view, f map[string]string) { delete(f, "/proc/sys/kernel/seccomp/actions_avail") },
			"seccomp", true, "this kernel has no system call filters", "CONFIG_SECCOMP_FILTER"},

		{"no newuidmap", func(_ *view, f map[string]string) { delete(f, "/usr/bin/newuidmap") },
			"id mapping tools", false, "newuidmap is missing, a pod has a single user id", "apt-get install uidmap"},
		{"newgidmap in another directory", func(_ *view, f map[string]string) {
			delete(f, "/usr/bin/newgidmap")
			f["/usr/local/bin/newgidmap"] = ""
		}, "id mapping tools", false, "newuidmap and newgidmap are in different directories", "apt-get install uidmap"},
		{"an unprivileged newuidmap", func(v *view, _ map[string]string) {
			v.tool = func(path string) (program, error) { return program{mode: 0o755}, nil }
		}, "id mapping tools", false, "/usr/local/bin/newuidmap is neither setuid root nor has its capability", "chmod u+s"},
		{"a directory one may not look into", func(v *view, _ map[string]string) {
			v.tool = func(path string) (program, error) { return program{}, fs.ErrPermission }
		}, "id mapping tools", false, "look for newuidmap: permission denied", "apt-get install uidmap"},
		{"no new privileges", func(_ *view, f map[string]string) { f["/proc/self/status"] = "NoNewPrivs:\t1\nSeccomp:\t0\n" },
			"id mapping tools", false, "no_new_privs is set, newuidmap cannot work", "NoNewPrivileges="},
		{"root maps no ids", func(v *view, f map[string]string) { v.uid = 0; delete(f, "/usr/bin/newuidmap") },
			"id mapping tools", false, "OK", ""},

		{"no subuids", func(_ *view, f map[string]string) { delete(f, "/etc/subuid") },
			"subordinate ids", false, "/etc/subuid gives dev 0 ids, images expect 65536", "usermod --add-subuids"},
		{"no subgids", func(_ *view, f map[string]string) { f["/etc/subgid"] = "other:100000:65536\n" },
			"subordinate ids", false, "/etc/subgid gives dev 0 ids, images expect 65536", "usermod --add-subuids"},
		{"a user without a name", func(v *view, f map[string]string) { v.user = "" },
			"subordinate ids", false, "/etc/subuid gives 1000 0 ids, images expect 65536", "usermod"},
		{"root has all ids", func(v *view, f map[string]string) { v.uid = 0; delete(f, "/etc/subuid") },
			"subordinate ids", false, "OK", ""},

		{"no delegation", func(v *view, _ map[string]string) {
			v.limit = func() (delegation.Subtree, error) {
				return delegation.Subtree{}, &delegation.NotDelegated{Why: "this host uses cgroup v1", Cure: "boot with cgroup v2"}
			}
		}, "resource limits", false, "limits are not enforced: this host uses cgroup v1", "boot with cgroup v2"},
		{"a controller is missing", func(v *view, _ map[string]string) {
			v.limit = func() (delegation.Subtree, error) {
				return delegation.Subtree{Path: "/x", Controllers: []string{"memory", "pids"}}, nil
			}
		}, "resource limits", false, "limits are not enforced: the cgroup controller cpu is not delegated to this user", "delegate.conf"},

		{"no /proc", func(_ *view, f map[string]string) { delete(f, "/proc/meminfo") },
			"memory", false, "read the machine's memory: /proc/meminfo has no MemTotal", "mount /proc"},
		{"uname fails", func(v *view, _ map[string]string) {
			v.uname = func() (string, string, error) { return "", "", unix.EFAULT }
		}, "kernel", false, "OK", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := debian()
			probe := fake(t, nil)
			tt.change(&probe, files)
			v := fake(t, files)
			v.uid, v.user, v.fork, v.tool, v.limit, v.uname = probe.uid, probe.user, probe.fork, probe.tool, probe.limit, probe.uname
			var f Finding
			findings := probes(v)
			for _, f = range findings {
				if f.Name == tt.probe {
					break
				}
			}
			detail := strings.ReplaceAll(f.Detail, v.root, "")
			if f.OK {
				detail = "OK"
			}
			if f.Name != tt.probe || detail != tt.detail || f.Fatal != tt.fatal || !strings.Contains(f.Cure, tt.cure) || f.OK != (f.Cure == "") {
				t.Errorf("got %+v", f)
			}
			refusal := Refusal(findings)
			if (refusal != nil) != (tt.fatal && !f.OK) {
				t.Errorf("refusal: %v", refusal)
			}
			if refusal != nil && (!strings.Contains(refusal.Error(), f.Detail) || report.Hint(refusal) != f.Cure) {
				t.Errorf("the refusal %q (hint %q) does not speak of %+v", refusal, report.Hint(refusal), f)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	attr := func(effective, permitted uint32) []byte {
		b := make([]byte, 20) // vfs_cap_data, revision 2
		binary.LittleEndian.PutUint32(b, 0x02000000|effective)
		binary.LittleEndian.PutUint32(b[4:], permitted)
		return b
	}
	for name, tt := range map[string]struct {
		p    program
		want bool
	}{
		"setuid root":                     {program{mode: 0o755 | fs.ModeSetuid}, true},
		"setuid of somebody else":         {program{mode: 0o755 | fs.ModeSetuid, owner: 5}, false},
		"setuid root, not executable":     {program{mode: 0o644 | fs.ModeSetuid}, false},
		"plain":                           {program{mode: 0o755}, false},
		"with the capability":             {program{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETUID)}, true},
		"with another capability":         {program{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETGID)}, false},
		"with it permitted, not in force": {program{mode: 0o755, caps: attr(0, 1<<unix.CAP_SETUID)}, false},
		"with a truncated attribute":      {program{mode: 0o755, caps: attr(1, 1<<unix.CAP_SETUID)[:8]}, false},
	} {
		if got := tt.p.can(unix.CAP_SETUID); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestThisHost(t *testing.T) {
	least := time.Hour
	for range 20 {
		start := time.Now()
		findings := Check()
		least = min(least, time.Since(start))
		for _, f := range findings {
			if f.Name == "" || f.Detail == "" || f.OK == (f.Cure != "") {
				t.Fatalf("a finding says too little or too much: %+v", f)
			}
		}
	}
	t.Logf("all probes: %v", least)
	if least > 3*time.Millisecond && os.Getenv("PODRUN_TEST_VM") == "" { // an emulated machine has no say
		t.Errorf("the probes take %v at best, 3 ms are allowed", least)
	}
	total, err := MemoryTotal()
	if err != nil || total < 64<<20 {
		t.Errorf("memory %d, %v", total, err)
	}
}

// TestForkUserns compares the answer of the fork with that of the files: this
// host's are not in doubt, or the fork is right by definition.
func TestForkUserns(t *testing.T) {
	v := host()
	sure := v.sysctl(clone) != "0" && v.sysctl(maximum) != "0" && v.sysctl(apparmor) != "1" && v.status("Seccomp") != "2"
	if err := forkUserns(); sure && err != nil {
		t.Errorf("the files allow user namespaces, the fork says: %v", err)
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

func TestMemTotal(t *testing.T) {
	for _, text := range []string{"", "MemTotal: 12 MB\n", "MemTotal: x kB\n", "MemTotal: 99999999999999999999 kB\n", "MemTotal: 9007199254740992 kB\n"} {
		if got, err := memTotal(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
