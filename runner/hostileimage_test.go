package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// An image in which what podrun mounts on is a link, a file or a directory of another
// kind gets no more than others: its container is not made, or has the kernel's own
// /proc, masked and read-only where it must be, and nothing outside is touched
// (CVE-2019-19921, CVE-2025-31133, CVE-2025-52565, CVE-2026-41579).
func TestImagesWithLinksForPodrunsMounts(t *testing.T) {
	testenv.NoLeaks(t)
	for name, spoil := range map[string]func(root, outside string) error{
		"/dev leads out": func(root, outside string) error { return os.Symlink(outside, filepath.Join(root, "dev")) },
		"/dev leads up and out": func(root, outside string) error {
			return os.Symlink(strings.Repeat("../", 30)+outside[1:], filepath.Join(root, "dev"))
		},
		"/dev leads inside":        func(root, outside string) error { return os.Symlink("/tmp", filepath.Join(root, "dev")) },
		"/dev is a file":           func(root, outside string) error { return os.WriteFile(filepath.Join(root, "dev"), nil, 0o644) },
		"/dev/null leads to /proc": func(root, outside string) error { return inDir(root, "dev", "null", "/proc/sys/kernel/core_pattern") },
		"/dev/pts leads to /proc":  func(root, outside string) error { return inDir(root, "dev", "pts", "/proc") },
		"/dev/console leads out":   func(root, outside string) error { return inDir(root, "dev", "console", outside+"/canary") },
		"/proc leads out":          func(root, outside string) error { return os.Symlink(outside, filepath.Join(root, "proc")) },
		"/proc leads inside":       func(root, outside string) error { return os.Symlink("/tmp", filepath.Join(root, "proc")) },
		"/proc is a file":          func(root, outside string) error { return os.WriteFile(filepath.Join(root, "proc"), nil, 0o644) },
		"/proc/sys leads out":      func(root, outside string) error { return inDir(root, "proc", "sys", outside) },
		"/sys leads to /proc":      func(root, outside string) error { return os.Symlink("/proc", filepath.Join(root, "sys")) },
		"/sys leads out":           func(root, outside string) error { return os.Symlink(outside, filepath.Join(root, "sys")) },
		"/etc leads out":           func(root, outside string) error { return rename(root, "etc", outside) },
		"/etc leads to /proc":      func(root, outside string) error { return rename(root, "etc", "/proc") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, outside := filepath.Join(dir, "layer"), filepath.Join(dir, "outside")
			if err := testenv.BusyboxRootfs(l); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"tmp", "../outside"} {
				if err := os.MkdirAll(filepath.Join(l, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(outside, "canary"), []byte("host"), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"dev", "proc", "sys"} {
				if err := os.RemoveAll(filepath.Join(l, d)); err != nil {
					t.Fatal(err)
				}
			}
			if err := spoil(l, outside); err != nil {
				t.Fatal(err)
			}
			const script = `for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /dev/null/x; do echo x >$f && echo "wrote $f"; done 2>/dev/null
test -s /proc/kcore && echo kcore; grep -q "^nodev.proc$" /proc/filesystems && echo proc; exit 0`
			p := start(t, newPlan(nil, []pod.Container{shell(l, "a", script)}))
			st := p.until("ended or refused", func(st pod.Status) bool {
				w := st.Containers[0].State.Waiting
				return st.Phase.Terminal() || w != nil && w.Message != ""
			})
			if st.Phase == pod.Succeeded && p.log("a") != "proc\n" {
				t.Errorf("the container says %q", p.log("a"))
			}
			p.stop(0)
			left, err := os.ReadDir(outside)
			if err != nil || len(left) != 1 {
				t.Errorf("outside there are %v, %v", left, err)
			}
			if b, err := os.ReadFile(filepath.Join(outside, "canary")); err != nil || string(b) != "host" {
				t.Errorf("the canary has %q, %v", b, err)
			}
		})
	}
}

func inDir(root, dir, name, target string) error {
	if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(root, dir, name))
}

// rename makes a directory of the image a link.
func rename(root, name, target string) error {
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(root, name))
}
