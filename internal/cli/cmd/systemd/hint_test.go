package systemd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// TestHintWithoutUnit: without systemd an installation names the command that runs without a unit.
func TestHintWithoutUnit(t *testing.T) {
	missing := report.New(report.Failure, "podrun up -d FILE runs the pods without a unit", "%w", systemd.ErrNotBooted)
	for want, words := range map[string][]string{
		"podrun node runs without a unit":               {"node"},
		"podrun node --max-pods 20 runs without a unit": {"node", "--max-pods", "20"},
	} {
		if got := report.Hint(withoutUnit(fmt.Errorf("install: %w", missing), words...)); got != want {
			t.Errorf("the hint is %q, want %q", got, want)
		}
	}
	if other := errors.New("another error"); withoutUnit(other) != other {
		t.Error("another error is changed")
	}
}
