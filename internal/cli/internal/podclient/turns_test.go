package podclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(turns, 2)
		take := func() (end func(), after time.Duration) {
			began := time.Now()
			end, err := took.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return end, time.Since(began)
		}
		end, _ := take()
		take()
		end()
		if _, after := take(); after != 0 {
			t.Errorf("a turn that has ended was free after %v", after)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := took.take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("without a free turn: %v", err)
		}
		if _, after := take(); after != turnTime {
			t.Errorf("a turn that was not ended was free after %v", after)
		}
	})
}

// A turn that has ended by itself does not end the turn of another stop.
func TestTurnEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(turns, 1)
		first, err := took.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := took.take(t.Context()); err != nil { // after turnTime
			t.Fatal(err)
		}
		first()
		if len(took) != 1 {
			t.Errorf("%d turns are taken, not the second one", len(took))
		}
		time.Sleep(turnTime) // in the bubble: no timer is left
	})
}
