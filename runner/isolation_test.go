package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// S23, S26: what a container sees of other containers and of podrun: nothing of other pods; in its pod the
// processes of other containers only if they are shared; never the supervisor and pod init.
func TestWhatContainersSeeOfOthers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for _, shared := range []bool{false, true} {
		plan := newPlan(nil, []pod.Container{shell(l, "a", "echo mine >/dev/shm/mine; exec sleep 1111"), shell(l, "b", "exec sleep 2222")})
		plan.ShareProcessNamespace = shared
		p := start(t, plan)
		other := start(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 3333")}), "q"))
		p.running()
		other.running()
		waitFor := "until test -e /dev/shm/mine; do usleep 1000; done; "
		if shared { // a process has no command line while it executes a program
			waitFor += "until cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'sleep [1]111'; do usleep 1000; done; "
		}
		_, output := p.exec("b", "/bin/sh", "-c", waitFor+"cat /dev/shm/mine; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		for word, want := range map[string]bool{"mine": true, "sleep 2222": true, "sleep 1111": shared, "sleep 3333": false, "_supervisor": false} {
			if strings.Contains(output, word) != want {
				t.Errorf("shared %v: %q is seen: %v, in %q", shared, word, !want, output)
			}
		}
		_, far := other.exec("c", "/bin/sh", "-c", "ls /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		for _, word := range []string{"mine", "sleep 1111", "sleep 2222", "_supervisor"} {
			if strings.Contains(far, word) {
				t.Errorf("another pod sees %q: %q", word, far)
			}
		}
		p.stop(0)
		other.stop(0)
	}
}

// A container has no access to the keys of the user's session, even without a seccomp filter.
func TestKeysOfTheUserAreNotSeen(t *testing.T) {
	testenv.NoLeaks(t)
	const name = "podrun-test-key"
	runtime.LockOSThread() // a session keyring belongs to a thread and its children
	defer runtime.UnlockOSThread()
	if _, err := unix.KeyctlJoinSessionKeyring("podrun-test"); err != nil {
		t.Fatal(err)
	}
	key, err := unix.AddKey("user", name, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Fatal(err)
	}
	const ofItsSession = 0x3f000000 // all rights for the possessor, none for others
	if err := unix.KeyctlSetperm(key, ofItsSession); err != nil {
		t.Fatal(err)
	}
	c := shell(layer(t), "a", "cat /proc/keys; exec sleep 1000")
	c.ProcUnmasked, c.SeccompUnconfined = true, true
	plan := newPlan(nil, []pod.Container{c})
	w := startWhole(t, plan)
	w.until(running)
	code, out := w.ask("a", "cat", "/proc/keys")
	if code != 0 || strings.Contains(out, name) || strings.Contains(logText(t, w.place, "a", 0), name) {
		t.Errorf("the user's keys are seen: %d %s", code, out)
	}
}

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

// CVE-2024-21626, CVE-2016-9962: none of the supervisor's open files reaches a container, by inheritance or
// as its working directory.
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
			// readlink's own descriptor of the directory it lists is closed again.
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

// The working directory is made before the container's program runs, by a process with descriptors of podrun's. None of them
// leads out of the container meanwhile: an image chooses the path, and its links may continue it.
func TestWorkingDirectoryIsMadeInTheContainer(t *testing.T) {
	byEachInit(t, func(t *testing.T, start func(t *testing.T, plan *pod.Plan) *testPod) {
		testenv.NoLeaks(t)
		l, outside := layer(t), t.TempDir()
		p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
		p.running()
		r := newRace(p)
		for fd := 3; fd < 16; fd++ {
			for i, up := range []string{"../../1/root", strings.Repeat("/..", 30)} {
				c := shell(l, "b", "pwd")
				c.Cwd = fmt.Sprintf("/proc/self/fd/%d/%s%s/fd%d-%d", fd, up, outside, fd, i)
				r.run(&c)
			}
		}
		expectEmpty(t, outside)
	})
}

// The root of another process, which a container sees with hostPID, is no way out either. (libcontainer's init would follow it,
// and is confined by the user namespace that manifest/build gives to such pods.)
func TestWorkingDirectoryIsNotMadeInAnotherRoot(t *testing.T) {
	testenv.NoLeaks(t)
	l, outside := layer(t), t.TempDir()
	plan := newPlan(nil, []pod.Container{shell(l, "a", "pwd")})
	plan.HostPID, plan.Containers[0].Cwd = true, fmt.Sprintf("/proc/%d/root%s/made", os.Getpid(), outside)
	end := start(t, plan).ended().Containers[0].State.Terminated
	if end == nil || !strings.HasPrefix(end.Message, "make the working directory "+plan.Containers[0].Cwd) {
		t.Errorf("%+v", end)
	}
	expectEmpty(t, outside)
}

func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("outside of the container there is %v, %v", entries, err)
	}
}

// A container that can mount covers its /proc, in which libcontainer would find the exec shim for a command: the command has its
// filter and no other capabilities all the same, and no program of the container takes the exec shim's place.
func TestCommandsOfAContainerThatCoversProc(t *testing.T) {
	testenv.NoLeaks(t)
	a := shell(layer(t), "a", `mkdir /real && mount --rbind /proc /real && mount -t tmpfs t /proc && mkdir -p /proc/self/fd &&
		printf '#!/bin/sh\ncat /real/self/status >/taken\n' >/proc/self/fd/3 && chmod 755 /proc/self/fd/3 && echo covered && exec sleep 1000`)
	a.Capabilities = append(slices.Clone(testCaps), "CAP_SYS_ADMIN")
	p := start(t, newPlan(nil, []pod.Container{a}))
	p.running()
	waitLog(t, p, "a", "covered")
	said := onTerminal(t, p, "a", "sh", "-c", "cat /real/self/status")
	if !strings.Contains(said, "Seccomp:\t2") || !strings.Contains(said, "CapBnd:\t00000000002404eb") {
		t.Errorf("a command on a terminal has %s", said)
	}
	if code, out := p.exec("a", "cat", "/taken"); code == 0 {
		t.Errorf("a program of the container ran: %s", out)
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

// S20, S25: operations that must fail in a container.
func TestForbiddenRequests(t *testing.T) {
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

// S37: the pod's process limit stops a fork bomb: pids.max or, without a cgroup, the limit of the pod's
// user. The pod can still be stopped.
func TestForkBombIsBounded(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{
		shell(l, "bomb", "for i in $(seq 20000); do sleep 1000 & done; echo unbounded; exec sleep 1000"),
	}))
	p.until("out of processes", func(st pod.Status) bool { return st.Containers[0].State.Terminated != nil })
	if got := p.log("bomb"); !strings.Contains(got, "can't fork") {
		t.Errorf("20000 processes: %q", got)
	}
	if st := p.stop(0); !st.Phase.Terminal() {
		t.Errorf("phase %s after a stop", st.Phase)
	}
}

// S14: an image's passwd and group files may contain anything.
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

// A crash starts no program of the host, and leaves no file.
func TestCrashesLeaveNothing(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	_, limits := p.exec("a", "/bin/sh", "-c", "cat /proc/1/limits; sh -c 'kill -SEGV $$'; ls /core* 2>/dev/null")
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(limits[strings.Index(limits, "Max core file size"):])
	if soft, hard := words[4], words[5]; strings.HasPrefix(string(pattern), "|") && (soft != "1" || hard != "1") || soft != "1" && soft != "0" {
		t.Errorf("core limits %s and %s, and the pattern is %s", soft, hard, pattern)
	}
	if strings.Contains(limits, "/core") {
		t.Errorf("a crash left a file: %s", limits)
	}
}

// The other process limits are inherited from the process that started the pod, as with containerd, although
// podrun's own programs raise theirs.
func TestLimitsOfWhoStartsThePod(t *testing.T) {
	testenv.NoLeaks(t)
	const look = "ulimit -Sn; ulimit -Hn; ulimit -Ss; ulimit -Hs; ulimit -Sf"
	want, err := exec.Command("/bin/sh", "-c", look).Output()
	if err != nil {
		t.Fatal(err)
	}
	l := layer(t)
	w := startWhole(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	w.until(running)
	if _, got := w.ask("a", "/bin/sh", "-c", look); got != string(want) {
		t.Errorf("%q instead of %q", got, want)
	}
	if _, got := w.ask("a", "/bin/sh", "-c", "grep 'open files' /proc/1/limits"); !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(string(want))[:2], " ")) {
		t.Errorf("its first process: %q, want %q", got, want)
	}
}

// The pod has a warning about what an ephemeral container does not get.
func TestAnEphemeralContainerIsWarnedOf(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	late := shell(l, "late", "exec sleep 1000")
	late.Capabilities = append([]string{"CAP_SYS_PTRACE"}, testCaps...)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.Ephemeral = []pod.Container{late}
	p := start(t, plan)
	p.until("started", func(st pod.Status) bool {
		return len(st.Ephemeral) == 1 && st.Ephemeral[0].State.Running != nil
	})
	if warnings := p.engine.completeStatus(pod.Status{}).Warnings; !slices.ContainsFunc(warnings, func(text string) bool {
		return strings.HasPrefix(text, "container late does not get CAP_SYS_PTRACE: ")
	}) {
		t.Errorf("warnings %q", warnings)
	}
}

// caller is the first argument of a re-exec entry point of the tests.
const caller = "_call"

// calls is that entry point: it tries system calls, and prints each result.
func calls([]string) int {
	name := append([]byte("x"), 0)
	p := uintptr(unsafe.Pointer(&name[0]))
	for _, c := range []struct {
		what string
		nr   uintptr
		args [3]uintptr
	}{
		{"socket AF_ALG", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}},
		{"socket AF_VSOCK", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}},
		{"unshare user", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWUSER}},
		{"unshare mount", unix.SYS_UNSHARE, [3]uintptr{unix.CLONE_NEWNS}},
		{"clone3", unix.SYS_CLONE3, [3]uintptr{p, 64}},
		{"setns", unix.SYS_SETNS, [3]uintptr{0, 0}},
		{"mount", unix.SYS_MOUNT, [3]uintptr{p, p, p}},
		{"keyctl", unix.SYS_KEYCTL, [3]uintptr{0, 0}},
		{"add_key", unix.SYS_ADD_KEY, [3]uintptr{p, p}},
		{"bpf", unix.SYS_BPF, [3]uintptr{0, p, 8}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{p}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [3]uintptr{0, p}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [3]uintptr{}},
		{"open_tree", unix.SYS_OPEN_TREE, [3]uintptr{0, p, 1}},
		{"none", 5000, [3]uintptr{}},
	} {
		_, _, errno := unix.Syscall(c.nr, c.args[0], c.args[1], c.args[2])
		fmt.Printf("%s: %s\n", c.what, unix.ErrnoName(errno))
	}
	return 0
}

// System calls that were used to escape from containers are refused. Unknown ones fail as in a kernel
// without them (ENOSYS), so that programs use a fallback.
func TestRefusedSystemCalls(t *testing.T) {
	testenv.NoLeaks(t)
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "test")
	if err := os.WriteFile(self, program, 0o755); err != nil {
		t.Fatal(err)
	}
	c := shell(layer(t), "a", "exec /test "+caller)
	plan := newPlan(nil, nil)
	share := func(name, path, place string) {
		plan.Volumes = append(plan.Volumes, pod.Volume{Name: name, Kind: pod.HostPath, Path: path})
		c.Mounts = append(c.Mounts, pod.Mount{Volume: name, Path: place, ReadOnly: true})
	}
	share("test", self, "/test")
	for _, lib := range []string{"lib", "lib64"} { // unless it is static
		if _, err := os.Stat("/" + lib); err == nil {
			share(lib, "/"+lib, "/"+lib)
		}
	}
	plan.Containers = []pod.Container{c}
	p := start(t, plan)
	if st := p.ended(); st.Phase != pod.Succeeded {
		t.Fatalf("%+v: %s", st, p.log("a"))
	}
	count := 0
	for line := range strings.Lines(p.log("a")) {
		what, result, _ := strings.Cut(strings.TrimSpace(line), ": ")
		want := "EPERM"
		switch what {
		case "clone3", "none":
			want = "ENOSYS"
		}
		if result != want {
			t.Errorf("%s: %s, want %s", what, result, want)
		}
		count++
	}
	if count != 16 {
		t.Errorf("%d calls were tried: %s", count, p.log("a"))
	}
}
