package testenv

import (
	"os"
	"testing"
)

// Need skips t, saying why, where probe finds that the host lacks something. In
// CI (environment CI), where everything must be there, it fails t instead.
func Need(t testing.TB, probe func() error) {
	t.Helper()
	err := probe()
	if err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("this host must not lack anything (CI is set): %v", err)
	}
	t.Skipf("this host lacks something: %v", err)
}
