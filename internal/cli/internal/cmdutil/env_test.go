package cmdutil

import (
	"testing"
	"time"
)

func TestPullBackOff(t *testing.T) {
	for attempt, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if got := pullBackOff(attempt); got != want*time.Second {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want*time.Second)
		}
	}
	if got := pullBackOff(1000); got != lastPullBackOff {
		t.Errorf("%v", got)
	}
}
