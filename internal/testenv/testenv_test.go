package testenv

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestRunsAsRootOfAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 || os.Getpid() != 1 {
		t.Errorf("uid %d pid %d, want 0 and 1", os.Getuid(), os.Getpid())
	}
	b, _ := os.ReadFile("/proc/self/uid_map")
	t.Logf("%s", b)
}
