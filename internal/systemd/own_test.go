package systemd

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

// Without systemd the hint does not suggest to log in again, or to enable lingering.
func TestNoManagerError(t *testing.T) {
	for booted, want := range map[bool][2]string{
		true:  {"there is no systemd for this user", "loginctl enable-linger"},
		false: {"systemd does not run on this machine", "podrun up -d FILE"},
	} {
		err := noManagerError(booted)
		if got := err.Error(); got != want[0] {
			t.Errorf("booted %v: %q, want %q", booted, got, want[0])
		}
		if got := report.Hint(err); !strings.Contains(got, want[1]) {
			t.Errorf("booted %v: the hint %q lacks %q", booted, got, want[1])
		}
	}
}
