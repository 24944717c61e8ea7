package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/volumes"
)

// A privileged container may do in its user namespace everything its user may do, and nothing to the host.
func TestPrivileged(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	c := shell(l, "a", "exec sleep 1000")
	c.Privileged, c.SeccompUnconfined = true, true
	c.Capabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_MKNOD", "CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE"}
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	for _, script := range []string{
		"grep -q '^Seccomp:.0$' /proc/self/status", "mount -t tmpfs x /tmp && umount /tmp", "unshare -U true", "unshare -m true",
		"! grep -q ' /proc/kcore ' /proc/self/mounts", "grep -q ' /sys sysfs rw' /proc/self/mounts",
		"echo 1 >/proc/sys/net/ipv4/ip_forward", "date -s 2030-01-01 2>&1 | grep -q permitted", "ip addr add 10.99.99.99/32 dev lo",
	} {
		if code, out := p.exec("a", "/bin/sh", "-c", script); code != 0 {
			t.Errorf("%s: was not possible: %s", script, out)
		}
	}
	for _, script := range []string{
		"echo x >/proc/sys/kernel/core_pattern", "echo c >/proc/sysrq-trigger", "echo x >/sys/kernel/uevent_helper",
		"mknod /tmp/sda b 8 0 && head -c 1 /tmp/sda", "hostname other && test $(hostname) != other",
	} {
		if code, out := p.exec("a", "/bin/sh", "-c", script); code == 0 {
			t.Errorf("%s: was possible: %s", script, out)
		}
	}
	devices, err := volumes.HostDevices()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range devices {
		if code, out := p.exec("a", "/bin/sh", "-c", "test -c "+path+" -o -b "+path); code != 0 {
			t.Errorf("the host's %s is not there: %s", path, out)
		}
	}
}

func TestUnmaskedProc(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	masked := shell(l, "masked", "grep -c ' /proc/' /proc/self/mounts")
	open := shell(l, "open", "grep -c ' /proc/' /proc/self/mounts")
	open.ProcUnmasked = true
	p := start(t, newPlan(nil, []pod.Container{masked, open}))
	p.ended()
	if p.log("masked") == "0\n" || p.log("open") != "0\n" {
		t.Errorf("mounts below /proc: %s masked, %s open", p.log("masked"), p.log("open"))
	}
}

// The user's own seccomp profile is applied, in both forms; an invalid one gives an error.
func TestOwnSeccompProfile(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	script := "mkdir /x 2>&1; echo $?"
	docker := shell(l, "docker", script)
	docker.Seccomp = json.RawMessage(`{"defaultAction": "SCMP_ACT_ALLOW", "archMap": [], "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28, "includes": {}, "excludes": {}}]}`)
	oci := shell(l, "oci", script)
	oci.Seccomp = json.RawMessage(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}]}`)
	bad := shell(l, "bad", script)
	bad.Seccomp = json.RawMessage(`{"defaultAction": "SCMP_ACT_NONSENSE"}`)
	p := start(t, newPlan(nil, []pod.Container{docker, oci, bad}))
	st := p.until("ended and refused", func(st pod.Status) bool {
		w := st.Containers[2].State.Waiting
		return st.Containers[0].State.Terminated != nil && st.Containers[1].State.Terminated != nil && w != nil && w.Reason == "CreateContainerConfigError"
	})
	if got := p.log("docker"); !strings.Contains(got, "No space left on device\n1") {
		t.Errorf("a profile in Docker's form: %q", got)
	}
	if got := p.log("oci"); !strings.Contains(got, "Operation not permitted\n1") {
		t.Errorf("a profile in OCI's form: %q", got)
	}
	if w := st.Containers[2].State.Waiting; !strings.Contains(w.Message, "SCMP_ACT_NONSENSE") {
		t.Errorf("a bad profile: %+v", w)
	}
}

// With hostIPC a container sees the host's shared memory, and without it nothing of that.
func TestHostIPC(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	f, err := os.CreateTemp("/dev/shm", "podrun-test-") // other tests on this machine have theirs there
	if err != nil {
		t.Fatal(err)
	}
	file := f.Name()
	t.Cleanup(func() { os.Remove(file) })
	if _, err := f.WriteString("shared\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	ours, err := os.Readlink("/proc/self/ns/ipc")
	if err != nil {
		t.Fatal(err)
	}
	script := "readlink /proc/self/ns/ipc; cat " + file
	for host, want := range map[bool]string{true: ours + "\nshared\n", false: ""} {
		plan := newPlan(nil, []pod.Container{shell(l, "a", script)})
		plan.HostIPC = host
		w := startWhole(t, plan)
		w.until(func(st *pod.Status) bool { return st.Phase.Terminal() })
		if got := logText(t, w.place, "a", 0); host && got != want || !host && (strings.Contains(got, ours) || strings.Contains(got, "shared")) {
			t.Errorf("host IPC %v: %q, want %q", host, got, want)
		}
		w.remove()
	}
}

// An image in which a mount target of podrun's is a link, a file or a directory of another kind gains
// nothing: its container is not made, or has the kernel's own /proc, masked and read-only where it must be,
// and nothing outside is touched (CVE-2019-19921, CVE-2025-31133, CVE-2025-52565, CVE-2026-41579).
func TestImagesWithLinksForPodrunsMounts(t *testing.T) { byEachInit(t, startLinkedImages) }

func startLinkedImages(t *testing.T, start func(t *testing.T, plan *pod.Plan) *testPod) {
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

// rename replaces a directory of the image by a link.
func rename(root, name, target string) error {
	if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(root, name))
}
