package testenv

import (
	"testing"

	"golang.org/x/sys/unix"
)

// WithDescriptors calls f while this process gets only descriptors below a limit, none at 0.
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
