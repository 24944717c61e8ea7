package main

import (
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		times            []time.Duration
		min, median, max float64
	}{
		{nil, 0, 0, 0},
		{[]time.Duration{3 * ms}, 3, 3, 3},
		{[]time.Duration{9 * ms, 1 * ms, 2 * ms}, 1, 2, 9},
		{[]time.Duration{4 * ms, 1 * ms, 2 * ms, 8 * ms}, 1, 3, 8},
	} {
		if s := summarise(c.times); s.Min != c.min || s.Median != c.median || s.Max != c.max {
			t.Errorf("summarise(%v) = %+v, want %v/%v/%v", c.times, s, c.min, c.median, c.max)
		}
	}
}

func TestOwns(t *testing.T) {
	p := &person{ids: []span{{1001, 1}, {100000, 65536}}}
	for uid, want := range map[uint64]bool{0: false, 1000: false, 1001: true, 1002: false, 99999: false, 100000: true, 165535: true, 165536: false} {
		if p.owns(uid) != want {
			t.Errorf("owns(%d) = %v", uid, !want)
		}
	}
}
