package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// caller is the first argument of a stage of the tests'.
const caller = "_call"

// calls is that stage: it tries system calls, and prints what came of each.
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

// System calls with which containers were left are refused, and one that nobody knows is
// answered as by a kernel that does not have it: programs have another way then.
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
	share := func(name, path, at string) {
		plan.Volumes = append(plan.Volumes, pod.Volume{Name: name, Kind: pod.HostPath, Path: path})
		c.Mounts = append(c.Mounts, pod.Mount{Volume: name, Path: at, ReadOnly: true})
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
	seen := 0
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
		seen++
	}
	if seen != 16 {
		t.Errorf("%d calls were tried: %s", seen, p.log("a"))
	}
}
