package execshim

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Started waits until the program is executed, or until its context ends.
func TestStarted(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not yet": false} {
		t.Run(name, func(t *testing.T) {
			b, err := (&Program{}).PrepareInit(&Config{}, []string{"program"})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if err := b.Proceed(); err != nil {
				t.Fatal(err)
			}
			process, err := unix.FcntlInt(b.Files()[1].Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Read(process, make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			want := context.DeadlineExceeded
			if executed {
				ctx, want = t.Context(), nil
				unix.Close(process)
			}
			defer cancel()
			if err := b.Started(ctx); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if !executed {
				unix.Close(process)
			}
		})
	}
}
