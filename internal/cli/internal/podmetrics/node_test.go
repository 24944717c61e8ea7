package podmetrics

import (
	"testing"
	"time"
)

func TestBusyTime(t *testing.T) {
	const stat = "cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	if got, err := busyTime(stat); err != nil || got != 1710*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 x 4 5 6 7 8\n"} {
		if _, err := busyTime(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
