package resources

import "testing"

func TestPageName(t *testing.T) {
	for size, name := range map[int64]string{64 << 10: "64KB", 2 << 20: "2MB", 1 << 30: "1GB"} {
		if got := hugePageName(size); got != name {
			t.Errorf("%d is %s, want %s", size, got, name)
		}
	}
}
