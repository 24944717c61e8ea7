package sandbox

import (
	"slices"
	"testing"
)

// A repeated warning is reported once.
func TestSandboxWarnsOnce(t *testing.T) {
	var s Sandbox
	for _, text := range []string{"one", "two", "one"} {
		s.addWarning(text)
	}
	if got := s.Warnings(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("warnings %q", got)
	}
}
