package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// A record contains the time of each container's start order, in the clock that programs stamp
// with.
func TestOrdersIn(t *testing.T) {
	record := `{"Version":1,"Running":[{"Name":"b"}]}
{"accepted":{"boot":1},"containers":{"a":{"state":"ended","issued":{"boot":8000000000,"wall":"2026-11-21T20:53:24Z"}},"b":{"issued":{"boot":9000000000}}}}`
	got, err := ordersIn([]byte(record), 2*time.Second)
	if want := map[string]time.Duration{"a": 6 * time.Second, "b": 7 * time.Second}; err != nil || !maps.Equal(got, want) {
		t.Errorf("ordersIn = %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", `{"Version":1}`, `{} {"containers":{"a":{"state":"ended"}}}`} {
		if got, err := ordersIn([]byte(bad), 0); err == nil {
			t.Errorf("ordersIn(%s) = %v", bad, got)
		}
	}
}

// A cold start is the start of a container that cannot be prepared: it has a volume at /etc. The others
// have none.
func TestStampingPods(t *testing.T) {
	for _, p := range []startPod{sequentialPod, prestartedPod, coldPod} {
		text := p.text()
		if n := strings.Count(text, p.run); n != stamps {
			t.Errorf("%s: %d of %d containers stamp:\n%s", p.name, n, stamps, text)
		}
		if n := strings.Count(text, "mountPath: /etc/"); n != map[string]int{coldPod.name: stamps}[p.name] {
			t.Errorf("%s: %d have a volume at /etc:\n%s", p.name, n, text)
		}
	}
}

// Each way to start has a ratio to each of the others' starts, and a row in the table.
func TestStartRows(t *testing.T) {
	r := report{Starts: map[string]summary{"floor": {Median: 2}, "crun": {Median: 6}}}
	for _, kind := range startKinds {
		r.Starts[kind.key] = summary{Median: 12}
	}
	list, lines := r.ratios(), r.startLines()
	if len(list) != 2*len(startKinds) || len(lines) != len(startKinds)+2 {
		t.Errorf("%d ratios and %d lines of %d ways", len(list), len(lines), len(startKinds))
	}
	if !strings.Contains(lines[0], "6.0 times floor's, 2.0 times crun's") {
		t.Errorf("%q", lines[0])
	}
}
