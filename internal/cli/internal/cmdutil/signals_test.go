package cmdutil

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
)

// TestWhileRead checks that WhileRead ends when the reader of the output pipe closes it, not before, and
// never for an output that is no pipe.
func TestWhileRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	wait := func(ctx context.Context) error {
		r.Close()
		<-ctx.Done()
		return ctx.Err()
	}
	if e := exitcode.As(WhileRead(t.Context(), w, wait)); e == nil || e.Code != exitcode.BrokenPipe {
		t.Errorf("without a reader it ends as %v", e)
	}
	failed := errors.New("failed")
	if err := WhileRead(t.Context(), new(bytes.Buffer), func(context.Context) error { return failed }); err != failed {
		t.Errorf("its own error becomes %v", err)
	}
}
