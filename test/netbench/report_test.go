package main

import (
	"slices"
	"strings"
	"testing"
)

// TestVerdicts: a target is met, missed or not measured; without the figures of pods there is none.
func TestVerdicts(t *testing.T) {
	f := figures{}
	if list := f.verdicts(); list != nil {
		t.Errorf("nothing was measured: %v", list)
	}
	for what, values := range map[string][2]float64{"out" + there: {9, 8}, "out" + back: {9, 10}, "out" + median: {3, 3}} {
		f.add(what, "podrun", values[0])
		f.add(what, "pasta", values[1])
	}
	f.add(startTime, "podrun", 5)
	f.add("in"+there, "podrun", 1)
	results := map[string]string{}
	for _, v := range f.verdicts() {
		results[v.target] = v.result
	}
	for target, want := range map[string]string{
		"podrun, out" + there + ": 9, at least 8 (1.0 × pasta)": "met",
		"podrun, out" + back + ": 9, at least 10 (1.0 × pasta)": "missed",
		"podrun, out" + median + ": 3, at most 3 (1.0 × pasta)": "met",
		"podrun, out" + there + ": 9, at least 0 (0.5 × veth)":  "veth broke",
		"podrun, in" + there + ": 1, at least 0 (1.0 × pasta)":  "pasta broke",
		"podrun, " + startTime + ": 5, at most 5":               "met",
	} {
		if got, ok := results[target]; !ok || got != want {
			t.Errorf("%s: %q, want %q; of %v", target, got, want, results)
		}
	}
}

// TestRatio: figures of the same round are compared; a round without the other's is left out.
func TestRatio(t *testing.T) {
	for want, pair := range map[string][2][]float64{
		"":     {{1, 2}, nil},
		"2.00": {{4, 9, 2}, {2, 0, 1}},
		"0.50": {{1, 5}, {2}},
	} {
		if got := ratio(pair[0], pair[1]); got != want {
			t.Errorf("%v: %q, want %q", pair, got, want)
		}
	}
}

// TestTable: quantities are sorted, and a quantity of no shown network has no row.
func TestTable(t *testing.T) {
	f := figures{}
	for _, value := range []float64{1, 7, 3} {
		f.add("b", "podrun", value)
	}
	f.add("a", "pasta", 2)
	f.add("c", "elsewhere", 9)
	got := f.table("medians", []string{"podrun", "pasta"})
	if !slices.Equal(got.Head, []string{"medians", "podrun", "pasta"}) || len(got.Rows) != 2 ||
		strings.Join(got.Rows[0], "|") != "a||2" || strings.Join(got.Rows[1], "|") != "b|3|" {
		t.Errorf("%+v", got)
	}
}
