package main

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// callPrefix begins the measure of a single system call. It is no limit; it shows which calls have
// become more.
const callPrefix = "call:"

const (
	tolerance     = 5.0  // percent that a count may grow
	toleranceMost = 25.0 // a count that varies more is left out
	slack         = 3    // a count may grow by so much, whatever it is
)

// unstable are counts that are no limits. On a busy machine down repeats its connection to the
// supervisor, and the end of the pod overlaps work that the supervisor has delayed.
var unstable = []string{"down calls"}

// expectation is a line of the file of expected counts.
type expectation struct {
	command, measure string
	count            float64
	tolerance        float64 // in percent
}

// readExpected reads the file. A line that begins with # is a comment.
func readExpected(file string) (list []expectation, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text := lines.Text(); text != "" && text[0] != '#' {
			var e expectation
			if _, err := fmt.Sscan(text, &e.command, &e.measure, &e.count, &e.tolerance); err != nil {
				return nil, fmt.Errorf("read %s: line %q: %w", file, text, err)
			}
			list = append(list, e)
		}
	}
	return list, nil
}

// expect makes expectations of the values of all rounds, which are sorted.
func expect(found map[string]map[string][]float64) (list []expectation, left []string) {
	for command, by := range found {
		for measure, values := range by {
			e := expectation{command, measure, middle(values), tolerance}
			if spread := 100 * (slices.Max(values) - slices.Min(values)) / max(e.count, 1); spread > tolerance && slices.Max(values)-slices.Min(values) > slack {
				e.tolerance = math.Ceil(1.5 * spread)
			}
			if slices.Contains(unstable, command+" "+measure) || e.tolerance > toleranceMost && !strings.HasPrefix(measure, callPrefix) {
				left = append(left, fmt.Sprintf("%s %s: %v to %v", command, measure, slices.Min(values), slices.Max(values)))
				continue
			}
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b expectation) int {
		return cmp.Or(cmp.Compare(a.command, b.command), cmp.Compare(a.measure, b.measure))
	})
	slices.Sort(left)
	return list, left
}

// middle returns the median, the lower one of two: a count is a whole number.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)/2]
}

func writeExpected(file string, list []expectation) error {
	var b strings.Builder
	b.WriteString("# command, measure, count, tolerance in percent: written by scripts/perf-check -update\n")
	for _, e := range list {
		fmt.Fprintln(&b, e.command, e.measure, e.count, e.tolerance)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// judge compares counts with the expected ones. It returns what has grown, and what has become less.
func judge(want []expectation, found map[string]map[string][]float64) (more, less []string) {
	was := map[string]float64{}
	for _, e := range want {
		was[e.command+" "+e.measure] = e.count
	}
	for _, e := range want {
		if strings.HasPrefix(e.measure, callPrefix) {
			continue
		}
		values := found[e.command][e.measure]
		if len(values) == 0 {
			more = append(more, fmt.Sprintf("%s: %s: was %v, is not measured", e.command, e.measure, e.count))
			continue
		}
		is := middle(values)
		text := fmt.Sprintf("%s: %s: was %v, is %v (tolerance %v %%)", e.command, e.measure, e.count, is, e.tolerance)
		switch limit := e.count * e.tolerance / 100; {
		case is-e.count > max(limit, slack):
			if e.measure == "calls" {
				text += "; grown: " + strings.Join(grown(e.command, was, found[e.command]), ", ")
			}
			more = append(more, text)
		case e.count-is > max(limit, slack):
			less = append(less, text)
		}
	}
	return more, less
}

// grown returns the system calls of a command that have become more, the most grown first.
func grown(command string, was map[string]float64, found map[string][]float64) []string {
	type growth struct {
		text string
		by   float64
	}
	var list []growth
	for measure, values := range found {
		name, ok := strings.CutPrefix(measure, callPrefix)
		before, is := was[command+" "+measure], middle(values)
		if ok && is > before {
			list = append(list, growth{fmt.Sprintf("%s %v to %v", name, before, is), is - before})
		}
	}
	slices.SortFunc(list, func(a, b growth) int {
		return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.text, b.text))
	})
	var texts []string
	for _, g := range list[:min(len(list), 8)] {
		texts = append(texts, g.text)
	}
	return texts
}
