package main

import (
	"encoding/xml"
	"slices"
	"strings"
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

// A ratio that has grown by more than a fifth is told, before all others.
func TestCompare(t *testing.T) {
	then := report{Times: map[string]map[string]summary{
		"exec true": {"podrun": {Median: 10}, "podman": {Median: 100}},
		"logs":      {"podrun": {Median: 10}, "podman": {Median: 40}},
		"gone":      {"podrun": {Median: 1}, "podman": {Median: 1}},
	}}
	now := report{Times: map[string]map[string]summary{
		"exec true": {"podrun": {Median: 26}, "podman": {Median: 200}}, // everything was slower, podrun more so
		"logs":      {"podrun": {Median: 11}, "podman": {Median: 40}},
		"new":       {"podrun": {Median: 1}, "podman": {Median: 1}},
	}, Starts: map[string]summary{"podrun": {Median: 9}, "floor": {Median: 3}}}
	lines, regressions := compare(then.ratios(), now.ratios())
	want := []string{"exec true\t1/10\t1/7.7\t+30 %\tWORSE\t", "logs\t1/4\t1/3.6\t+10 %\t\t"}
	if regressions != 1 || !slices.Equal(lines, want) {
		t.Errorf("compare = %d, %q, want 1, %q", regressions, lines, want)
	}
	for _, r := range now.ratios() {
		if r.Name == "start to exec, of the floor's" && (r.Value != 3 || r.Bar != 7) {
			t.Errorf("%+v", r)
		}
	}
}

// Every bar belongs to a ratio that is measured, and every ratio has its row in the plot.
func TestPlot(t *testing.T) {
	both := map[string]summary{"podrun": {Median: 1}, "podman": {Median: 2}}
	feet := map[string]footprint{"podrun": {PSS: 1}, "podman": {PSS: 9}}
	r := report{
		Times: map[string]map[string]summary{"exec true": both, "logs": both, "ps, 50 pods": both},
		Memory: map[string]map[string]footprint{
			shapes[1].title + ", just started": feet, shapes[1].title + ", idle": feet,
		},
		Costs:  &cost{Probe: map[string]map[string]float64{"exec true": {"podrun": 1, "podman": 60}, "httpGet": {"podrun": 1, "podman": 40}}},
		Starts: map[string]summary{"podrun": {Median: 9}, "floor": {Median: 3}},
		Scale:  &scale{Pods: 100, First: 1, Last: 1},
	}
	for _, s := range shapes {
		r.Times["up, "+s.title], r.Times["down, "+s.title] = both, both
	}
	reached := 0
	list := r.ratios()
	for _, x := range list {
		if x.Bar > 0 {
			reached++
		}
	}
	if reached != len(bars) {
		t.Errorf("%d of %d bars belong to a ratio", reached, len(bars))
	}
	svg := plot("<a title>", list)
	if n := strings.Count(svg, `text-anchor="end"`); n != len(list) {
		t.Errorf("%d rows for %d ratios", n, len(list))
	}
	if err := xml.Unmarshal([]byte(svg), new(any)); err != nil {
		t.Errorf("the plot is no XML: %v", err)
	}
	if strings.Contains(r.page(list), "NaN") {
		t.Error("the page has figures that are none")
	}
}
