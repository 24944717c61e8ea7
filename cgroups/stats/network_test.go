package stats

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// netDev is /proc/PID/net/dev as recorded on a kernel 6.1; the name of a long interface touches its first number.
const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     500       5    0    0    0     0          0         0      500       5    0    0    0     0       0          0
  eth0: 1296337    1024    1    2    0     0          0         7    91011     333    3    4    0     0       0          0
enp0s31f6a:12345678901 99    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`

func TestParseNetwork(t *testing.T) {
	want := []Interface{
		{"eth0", Traffic{1296337, 1024, 1, 2}, Traffic{91011, 333, 3, 4}},
		{"enp0s31f6a", Traffic{12345678901, 99, 0, 0}, Traffic{}},
	}
	got, err := parseNetwork(netDev)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, bad := range []string{"eth0: 1 2 3\n", strings.ReplaceAll(netDev, "91011", "many")} {
		if got, err := parseNetwork(bad); err == nil {
			t.Errorf("no error: %+v", got)
		}
	}
}

func TestFindInCgroup(t *testing.T) {
	dir := t.TempDir()
	if _, ok := FindInCgroup(dir, 1); ok {
		t.Error("found in no cgroup")
	}
	self := os.Getpid()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0\n"+strconv.Itoa(self)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, ok := FindInCgroup(dir, self); !ok || pid != self {
		t.Errorf("found %d, %v instead of %d", pid, ok, self)
	}
	if pid, ok := FindInCgroup(dir, self+1); ok {
		t.Errorf("found %d, which is another process", pid)
	}
}
