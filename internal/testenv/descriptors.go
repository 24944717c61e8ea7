package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// WithDescriptors calls f while this process gets only descriptors below a limit; with 0 it gets
// none.
func WithDescriptors(t testing.TB, limit uint64, f func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// IsWaitedFor reports whether this process waits for a descriptor by epoll(7), including Go's
// poller.
func IsWaitedFor(t testing.TB, fd int) bool {
	t.Helper()
	target := fmt.Sprintf("tfd: %8d ", fd)
	files, err := os.ReadDir("/proc/self/fdinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile("/proc/self/fdinfo/" + f.Name()); err == nil && strings.Contains(string(b), target) {
			return true
		}
	}
	return false
}
