package runner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// junkDescriptors opens 200 descriptors that an exec would inherit.
func junkDescriptors(t *testing.T) {
	t.Helper()
	for range 200 {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // no O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
}

// CVE-2024-21626, CVE-2016-9962: nothing of the supervisor's open files reaches a
// container, by inheritance or as its working directory.
func TestNoDescriptorReachesAContainer(t *testing.T) {
	testenv.NoLeaks(t)
	junkDescriptors(t)
	l := layer(t)
	list := "for f in /proc/self/fd/*; do echo ${f##*/} $(readlink $f); done"
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", list+"; exec sleep 1000")}))
	p.running()
	waitLog(t, p, "a", "2 pipe:")
	_, inExec := p.exec("a", "/bin/sh", "-c", list)
	for where, text := range map[string]string{"container": p.log("a"), "exec": inExec} {
		for line := range strings.Lines(text) {
			fd, target, _ := strings.Cut(strings.TrimSpace(line), " ")
			// readlink's own view of the directory it lists is gone again.
			if fd != "0" && fd != "1" && fd != "2" && target != "" {
				t.Errorf("%s has descriptor %s of %q", where, fd, target)
			}
		}
	}
}

func TestDescriptorsAreNoWorkingDirectory(t *testing.T) {
	testenv.NoLeaks(t)
	junkDescriptors(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	for fd := range 40 {
		dir := fmt.Sprintf("/proc/self/fd/%d", fd)
		code, out := p.request(&wire.ExecRequest{Container: "a", Args: []string{"/bin/sh", "-c", "ls; cat ../../../etc/shadow"}, Cwd: dir})
		if code == 0 {
			t.Errorf("exec with working directory %s: %q", dir, out)
		}
	}
	bad := shell(l, "b", "ls")
	bad.Cwd = "/proc/self/fd/7"
	q := start(t, withName(newPlan(nil, []pod.Container{bad}), "q"))
	st := q.ended()
	if end := st.Containers[0].State.Terminated; end == nil || end.Reason != "StartError" {
		t.Errorf("a container whose working directory is a descriptor: %+v", st.Containers[0].State)
	}
}

func withName(p *pod.Plan, name string) *pod.Plan {
	p.Name = name
	return p
}

func TestConfinementAsTheProcessSeesIt(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	status := "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"
	plain := shell(l, "plain", status)
	plain.Capabilities = []string{"CAP_CHOWN", "CAP_KILL"} // bits 0 and 5
	tight := shell(l, "tight", status)
	tight.Capabilities, tight.NoNewPrivileges, tight.User = nil, true, "1000"
	loose := shell(l, "loose", status)
	loose.Capabilities, loose.SeccompUnconfined = []string{"CAP_KILL"}, true
	p := start(t, newPlan(nil, []pod.Container{plain, tight, loose}))
	p.ended()
	want := map[string]string{
		"plain": caps("0000000000000000", "0000000000000021", "0000000000000021") + "NoNewPrivs: 0 Seccomp: 2",
		"tight": caps("0000000000000000", "0000000000000000", "0000000000000000") + "NoNewPrivs: 1 Seccomp: 2",
		"loose": caps("0000000000000000", "0000000000000020", "0000000000000020") + "NoNewPrivs: 0 Seccomp: 0",
	}
	for name, w := range want {
		if got := strings.Join(strings.Fields(p.log(name)), " "); got != w {
			t.Errorf("%s:\n got %s\nwant %s", name, got, w)
		}
	}
}

func caps(inherited, effective, bounding string) string {
	return fmt.Sprintf("CapInh: %s CapPrm: %s CapEff: %s CapBnd: %s CapAmb: 0000000000000000 ", inherited, effective, effective, bounding)
}

// S20, S25: what a container must not be able to do.
func TestForbiddenThings(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	for _, script := range []string{
		"echo x > /proc/sys/kernel/core_pattern", "echo c > /proc/sysrq-trigger", "echo x > /sys/kernel/uevent_helper",
		"test -s /proc/kcore", "test -s /proc/keys", "mount -t tmpfs x /tmp", "unshare -U true", "chroot / unshare -m true",
		"mknod /tmp/sda b 8 0", "touch /sys/x", "hostname other", "ls /sys/firmware | grep -q .",
		"mkdir /sys/fs/cgroup/x", "echo 0 >/sys/fs/cgroup/cgroup.procs", "mount -t cgroup -o memory x /tmp", "mount -t cgroup2 x /tmp",
		"find /sys/fs/cgroup -name release_agent | grep -q .", "mount -t bpf x /tmp", "ls /sys/fs/bpf | grep -q .", "mount -t debugfs x /tmp", "mount -o remount,rw /proc/sys",
	} {
		if code, out := p.exec("a", "/bin/sh", "-c", script); code == 0 {
			t.Errorf("%s: was possible: %s", script, out)
		}
	}
}

func TestReadOnlyRoot(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	c := shell(l, "a", "touch /x 2>&1; touch /v/x && echo written; touch /dev/shm/x && echo shared")
	c.ReadOnlyRoot = true
	c.Mounts = []pod.Mount{{Volume: "v", Path: "/v"}}
	plan := newPlan(nil, []pod.Container{c})
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}}
	p := start(t, plan)
	p.ended()
	if got := p.log("a"); got != "touch: /x: Read-only file system\nwritten\nshared\n" {
		t.Errorf("with a read-only root: %q", got)
	}
}

// S37: a fork bomb ends at the pod's limit of processes, be it pids.max or, where
// there is no cgroup, the limit of the pod's users; and the pod can still be stopped.
func TestForkBombIsBounded(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{
		shell(l, "bomb", "for i in $(seq 3000); do sleep 1000 & done; echo unbounded; exec sleep 1000"),
	}))
	p.until("out of processes", func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil })
	if got := p.log("bomb"); !strings.Contains(got, "can't fork") {
		t.Errorf("3000 processes: %q", got)
	}
	if st := p.stop(0); !st.Phase.Terminal() {
		t.Errorf("phase %s after a stop", st.Phase)
	}
}

// S14: an image's passwd and group may be anything.
func TestHostilePasswd(t *testing.T) {
	var groups strings.Builder
	for i := range 1<<16 + 1 {
		fmt.Fprintf(&groups, "g:x:%d:user\n", i)
	}
	for name, tt := range map[string]struct {
		file string
		make func(path string) error
	}{
		"fifo":              {"passwd", func(p string) error { return unix.Mkfifo(p, 0o644) }},
		"symlink to a fifo": {"passwd", func(p string) error { return os.Symlink("/fifo", p) }},
		"symlink out":       {"passwd", func(p string) error { return os.Symlink("../../../../../../dev/zero", p) }},
		"directory":         {"passwd", func(p string) error { return os.Mkdir(p, 0o755) }},
		"huge":              {"passwd", func(p string) error { return sparse(p, 1<<30) }},
		"group: fifo":       {"group", func(p string) error { return unix.Mkfifo(p, 0o644) }},
		"group: huge":       {"group", func(p string) error { return sparse(p, 1<<30) }},
		"group: too many":   {"group", func(p string) error { return os.WriteFile(p, []byte(groups.String()), 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			l := layer(t)
			if err := os.Remove(l + "/etc/" + tt.file); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(l+"/fifo", 0o644); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(l + "/etc/" + tt.file); err != nil {
				t.Fatal(err)
			}
			c := shell(l, "a", "true")
			c.User = "user"
			p := start(t, newPlan(nil, []pod.Container{c}))
			p.until("refused", func(st pod.Status) bool {
				w, e := st.Containers[0].State.Waiting, st.Containers[0].State.Terminated
				return (w != nil && w.Message != "") || (e != nil && e.ExitCode != 0)
			})
		})
	}
}

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}
