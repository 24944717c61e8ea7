// Package sleep waits.
package sleep

import (
	"context"
	"time"
)

// For waits for d. It returns the error of ctx if that ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
