package runner

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// withoutNftables calls f on a thread that, as do all processes it begins, finds a kernel
// that was built without nftables: it knows no such socket (EPROTONOSUPPORT).
func withoutNftables(t *testing.T, f func() error) error {
	t.Helper()
	const number, domain, protocol = 0, 16, 32 // offsets in seccomp_data(2), little-endian
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: domain},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: protocol},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.NETLINK_NETFILTER, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Where the kernel lacks what it takes to connect pods, a network stack in user space is
// chosen without being asked for, and the user is told why.
func TestNetstackIsChosen(t *testing.T) {
	testenv.NoLeaks(t)
	testenv.LoopbackUp(t)
	answering(t, remoteHost(t), 7000)
	plan := newPlan(nil, []pod.Container{shell(layer(t), "a", "exec sleep 1000000")})
	w := newWhole(t, plan)
	if err := withoutNftables(t, func() error { return w.start(plan) }); err != nil {
		t.Fatal(err)
	}
	w.until(running)
	st, err := w.place.Status()
	if err != nil || !slices.ContainsFunc(st.Warnings, func(said string) bool {
		return strings.HasPrefix(said, "the pod's network is a stack in user space") && strings.Contains(said, "modprobe")
	}) {
		t.Errorf("warnings %q: %v", st.Warnings, err)
	}
	if _, out := w.ask("a", "/bin/sh", "-c", "echo hi | nc 10.77.0.2 7000"); !regexp.MustCompile("^tcp 10.77.0.1:[0-9]+ hi\n$").MatchString(out) {
		t.Errorf("%q", out)
	}
}
