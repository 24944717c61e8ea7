package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestPassing(t *testing.T) {
	for text, want := range map[string]bool{
		"fetching blob: StatusCode: 503, \"\"": true, "StatusCode: 404, \"x\"": false, "unauthorized": false,
		"received unexpected HTTP status: 500 Internal Server Error": true,
	} {
		if got := isTemporary(errors.New(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if isTemporary(fmt.Errorf("x: %w", context.Canceled)) {
		t.Error("an end that was asked for passes")
	}
}
