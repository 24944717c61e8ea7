package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/podrun/podrun/test/internal/measure"
)

// columns are in the order of the table.
var columns = []string{"veth", "podrun", "pasta", "slirp4netns", "pod to pod", "pod to pod, IPv6"}

// targets are the project's own: podrun's median is at least, or with at most set at most, so many
// times another network's, or an absolute value.
var targets = []struct {
	what, network, than string
	factor              float64
	most                bool
}{
	{"out" + there, "podrun", "pasta", 1, false},
	{"out" + back, "podrun", "pasta", 1, false},
	{"in" + there, "podrun", "pasta", 1, false},
	{"in" + back, "podrun", "pasta", 1, false},
	{"out" + there, "podrun", "veth", 0.5, false},
	{"out" + back, "podrun", "veth", 0.5, false},
	{"in" + there, "podrun", "veth", 0.5, false},
	{"in" + back, "podrun", "veth", 0.5, false},
	{"out" + cpuThere, "podrun", "pasta", 0.8, true},
	{"out" + cpuBack, "podrun", "pasta", 0.8, true},
	{"in" + cpuThere, "podrun", "pasta", 0.8, true},
	{"in" + cpuBack, "podrun", "pasta", 0.8, true},
	{"out" + median, "podrun", "pasta", 1, true},
	{"in" + median, "podrun", "pasta", 1, true},
	{"out" + rate, "podrun", "pasta", 1, false},
	{"in" + rate, "podrun", "pasta", 1, false},
	{"out" + there, "pod to pod", "veth", 0.9, false},
	{"out" + back, "pod to pod", "veth", 0.9, false},
	{"out" + there, "pod to pod, IPv6", "veth", 0.9, false},
	{idleBytes, "podrun", "", 6, true},
	{startTime, "podrun", "", 5, true},
}

// table returns the medians: a row for each quantity, a column for each network.
func (f figures) table(title string) measure.Table {
	t := measure.Table{Head: append([]string{title}, columns...)}
	for _, what := range slices.Sorted(maps.Keys(f)) {
		cells := []string{what}
		for _, c := range columns {
			cell := ""
			if list := f[what][c]; len(list) > 0 {
				cell = fmt.Sprintf("%.4g", measure.Median(list))
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	return t
}

// targetTable returns the targets, and whether they are met.
func (f figures) targetTable() measure.Table {
	t := measure.Table{Head: []string{"target", ""}}
	for _, v := range f.verdicts() {
		t.Add(v.target, v.result)
	}
	return t
}

func (f figures) print(out io.Writer) error {
	medians, met := f.table("network, medians"), f.targetTable()
	fmt.Fprintln(out)
	if err := medians.Print(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return met.Print(out)
}

// verdict is the result for a target.
type verdict struct{ target, result string }

func (f figures) verdicts() (list []verdict) {
	for _, b := range targets {
		value, bound, of := measure.Median(f[b.what][b.network]), b.factor, ""
		if b.than != "" {
			bound, of = b.factor*measure.Median(f[b.what][b.than]), fmt.Sprintf(" (%.1f × %s)", b.factor, b.than)
		}
		word, met := "at least", value >= bound
		if b.most {
			word, met = "at most", value <= bound
		}
		result := map[bool]string{true: "met", false: "missed"}[met]
		switch {
		case len(f[b.what][b.network]) == 0:
			result = "not measured"
		case b.than != "" && len(f[b.what][b.than]) == 0:
			result = b.than + " broke"
		}
		list = append(list, verdict{fmt.Sprintf("%s, %s: %.4g, %s %.4g%s", b.network, b.what, value, word, bound, of), result})
	}
	return list
}

// page returns the same as Markdown.
func (f figures) page() string {
	medians, met := f.table(""), f.targetTable()
	return "Between a pod and a second host on a pair of devices; *veth* is such a pair alone, what the kernel\ncan do. Medians; of round trips and connections, those of slices that each network has in alternation.\n\n" +
		medians.Markdown() + "\n" + met.Markdown()
}
