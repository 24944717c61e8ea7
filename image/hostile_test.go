package image

import (
	"context"
	"strings"
	"testing"
)

// refused loads what must be refused, with a word of the reason, and leave nothing.
func refused(t *testing.T, path, reason string) {
	t.Helper()
	s := newStore(t)
	images, err := s.Load(context.Background(), path)
	if err == nil || len(images) != 0 {
		t.Fatalf("loaded %d images, %v; want an error about %q", len(images), err, reason)
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("error %q does not say %q", err, reason)
	}
	if left := content(t, s); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}
