package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// debian is a host without any problem, for user dev (1000).
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
		"/sys/fs/cgroup/cgroup.controllers":          "cpu memory pids\n",
		"/sys/class/rtc/rtc0":                        "",
		"/run/systemd/system/x":                      "",
		"/var/lib/systemd/linger/dev":                "",
		"/run/user/1000/systemd/private":             "",
		"/home/dev/x":                                "",
		"/tmp/x":                                     "",
	}
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		files["/proc/self/ns/"+ns] = ""
	}
	for _, file := range []string{"cgroup.kill", "cgroup.freeze", "memory.oom.group", "memory.peak", "cpu.pressure"} {
		files["/sys/fs/cgroup/x/"+file] = ""
	}
	return files
}

func setuid(path string) (privilegedProgram, error) {
	_, err := os.Stat(path)
	return privilegedProgram{mode: 0o755 | fs.ModeSetuid}, err
}

// fake is a view of files, in which the user may write to every existing directory.
func fake(t *testing.T, files map[string]string) prober {
	t.Helper()
	v := prober{root: t.TempDir(), uid: 1000, user: "dev", path: []string{"/usr/local/bin"}, tool: setuid}
	v.Setup = Setup{Data: "/home/dev/.local/share/podrun", Runtime: "/run/user/1000/podrun", Program: "/usr/local/bin/podrun"}
	v.now = time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	put(t, v.root, files)
	v.fork = func() error { return nil }
	v.limit = func() (cgroupPlace, error) {
		return cgroupPlace{delegation.Subtree{Path: "/sys/fs/cgroup/x", Controllers: []string{"cpu", "memory", "pids"}}, "below /sys/fs/cgroup/x"}, nil
	}
	v.uname = func() (string, string, error) { return "6.1.0", "aarch64", nil }
	v.calls = func() []syscallProbe {
		return []syscallProbe{{"openat2", true, "does this", nil}, {"fsopen", false, "does that", nil}}
	}
	v.statfs = func(path string) (FileSystem, error) {
		if strings.HasPrefix(path, v.root+"/run") {
			return FileSystem{Kind: "tmpfs", Memory: true}, nil
		}
		return FileSystem{Kind: "ext4", Free: 20 << 30, Size: 30 << 30, FreeFiles: 1_000_000, Files: 2_000_000}, nil
	}
	v.writable = func(string) error { return nil }
	v.openTun = func(string) error { return nil }
	v.synced = func() bool { return true }
	return v
}

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := root + name
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// finding is a case: the difference from a good host, and the expected finding.
type finding struct {
	name   string
	change func(v *prober, files map[string]string)
	probe  string
	level  Level
	detail string // all of it; ignored if the level is OK
	hint   string // a part of it
}

func (tt finding) test(t *testing.T) {
	files := debian()
	v := fake(t, nil)
	tt.change(&v, files)
	put(t, v.root, files)
	findings := run(v.probes(), Timeout)
	f, ok := FindByName(findings, tt.probe)
	detail := strings.ReplaceAll(f.Detail, v.root, "")
	hint := strings.ReplaceAll(f.Hint, v.root, "")
	if f.Level == OK {
		detail = tt.detail
	}
	if !ok || f.Level != tt.level || detail != tt.detail || !strings.Contains(hint, tt.hint) || (f.Level == OK) != (f.Hint == "") {
		t.Errorf("got %+v", f)
	}
	refusal := FirstFailure(findings)
	if (refusal != nil) != (tt.level == Failure) {
		t.Errorf("refusal: %v", refusal)
	}
	if refusal != nil && (!strings.Contains(refusal.Error(), f.Detail) || report.Hint(refusal) != f.Hint || report.ClassOf(refusal) != report.Host) {
		t.Errorf("the refusal %q (hint %q) does not speak of %+v", refusal, report.Hint(refusal), f)
	}
}
