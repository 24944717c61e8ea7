package measure

import (
	"errors"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 8}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	table := Table{Head: []string{"", "a", "b"}}
	table.Add("x", "1", "")
	if got, want := table.Markdown(), "|  | a | b |\n|---|---|---|\n| x | 1 |  |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWithin(t *testing.T) {
	failure := errors.New("not ready")
	if err := Within(0, 0, func() error { return failure }); err != failure {
		t.Errorf("%v, want the last error", err)
	}
	calls := 0
	err := Within(time.Hour, 0, func() error {
		if calls++; calls < 3 {
			return failure
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
