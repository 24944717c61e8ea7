package testenv

import (
	"os"
	"testing"
)

// Need skips t, with the reason, if probe finds that the host lacks something. In CI (environment
// CI), which must have everything, it fails t instead.
func Need(t testing.TB, probe func() error) {
	t.Helper()
	need(t, probe, "CI")
}

// NeedVM is Need for features that a build machine may lack and the test VM has: a service manager,
// delegated cgroups. It fails t if PODRUN_TEST_VM is set.
func NeedVM(t testing.TB, probe func() error) {
	t.Helper()
	need(t, probe, "PODRUN_TEST_VM")
}

func need(t testing.TB, probe func() error, strict string) {
	t.Helper()
	switch err := probe(); {
	case err == nil:
	case os.Getenv(strict) != "":
		t.Fatalf("this host must not lack anything (%s is set): %v", strict, err)
	default:
		t.Skipf("this host lacks something: %v", err)
	}
}
