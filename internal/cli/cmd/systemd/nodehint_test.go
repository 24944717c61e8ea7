package systemd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// TestNodeHint: without systemd install-node names what runs the node.
func TestNodeHint(t *testing.T) {
	missing := report.New(report.Failure, "podrun up -d FILE runs the pods without a unit", "%w", systemd.ErrNotBooted)
	for want, words := range map[string][]string{
		"podrun node runs the node without a unit":               nil,
		"podrun node --max-pods 20 runs the node without a unit": {"--max-pods", "20"},
	} {
		if got := report.Hint(withNodeHint(fmt.Errorf("install: %w", missing), words)); got != want {
			t.Errorf("the hint is %q, want %q", got, want)
		}
	}
	if other := errors.New("another error"); withNodeHint(other, nil) != other {
		t.Error("another error is changed")
	}
}
