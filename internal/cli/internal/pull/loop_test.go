package pull

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLoop runs loops with the results of their attempts. A client requests an attempt during "request", and two
// seconds after "asked"; the pod is stopped during "stopped", and two seconds after "ended". "final" is not to be retried.
func TestLoop(t *testing.T) {
	for _, c := range []struct{ name, results, want, err string }{
		{"first attempt", "ok", "", "<nil>"},
		{"back-off", "no no ok", "0s: no, next in 4s; 1s: waits; 4s: no, next in 8s; 5s: waits", "<nil>"},
		{"no retry", "no final", "0s: no, next in 4s; 1s: waits", "final"},
		{"request during an attempt", "no no request no ok", "0s: no, next in 4s; 1s: waits; 4s: no, next in 8s; 5s: waits; 12s: no, next in 4s; 13s: waits", "<nil>"},
		{"request between attempts", "no asked no ok", "0s: no, next in 4s; 1s: waits; 4s: asked, next in 8s; 5s: waits; 6s: no, next in 4s; 7s: waits", "<nil>"},
		{"stop during an attempt", "stopped", "", "stopped"},
		{"stop between attempts", "ended", "0s: ended, next in 4s; 1s: waits", "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := runLoop(t.Context(), strings.Fields(c.results))
				if got != c.want || fmt.Sprint(err) != c.err {
					t.Errorf("got %s, error %v", got, err)
				}
			})
		})
	}
}

func runLoop(ctx context.Context, results []string) (string, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	requests, began := make(chan struct{}, 1), time.Now()
	request := func() { requests <- struct{}{} }
	var published []string
	publish := func(format string, a ...any) {
		published = append(published, fmt.Sprintf("%v: ", time.Since(began))+fmt.Sprintf(format, a...))
	}
	loop := Loop{
		Try: func(context.Context) error {
			result := results[0]
			results = results[1:]
			switch result {
			case "ok":
				return nil
			case "request":
				request()
			case "asked":
				time.AfterFunc(2*time.Second, request)
			case "stopped":
				stop()
			case "ended":
				time.AfterFunc(2*time.Second, stop)
			}
			return errors.New(result)
		},
		Retry:    func(err error) bool { return err.Error() != "final" },
		BackOff:  func(attempt int) time.Duration { return 4 * time.Second << attempt },
		Failed:   func(err error, next time.Duration) { publish("%v, next in %v", err, next) },
		Waits:    func() { publish("waits") },
		Requests: requests,
	}
	err := loop.Run(ctx)
	return strings.Join(published, "; "), err
}
