package stats

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNetwork(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     440       4    0    0    0     0          0         0      440       4    0    0    0     0       0          0
  eth0:10 20 30 40 0 0 0 0 50 60 70 80 0 0 0 0
`
	got, err := parseNetwork(text)
	want := []Interface{{"eth0", Traffic{10, 20, 30, 40}, Traffic{50, 60, 70, 80}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"eth0: 1 2", "eth0: a 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0"} {
		if _, err := parseNetwork(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := ReadNetwork(os.Getpid()); err != nil {
		t.Error(err)
	}
}
