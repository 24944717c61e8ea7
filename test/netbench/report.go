package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/podrun/podrun/test/internal/measure"
)

// columns are in the order of the table.
var (
	podColumns  = []string{"veth", "podrun", "pasta", "slirp4netns", "pod to pod", "pod to pod, IPv6"}
	nodeColumns = []string{nodesPodrun, nodesKernel, nodesRoutes}
)

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
	{measure.ConnectionsIn, "podrun", "pasta", 1, false},
	{measure.ConnectionCPUIn, "podrun", "pasta", 1, true},
	{"out" + there, "pod to pod", "veth", 0.9, false},
	{"out" + back, "pod to pod", "veth", 0.9, false},
	{"out" + there, "pod to pod, IPv6", "veth", 0.9, false},
	{idleBytes, "podrun", "", 6, true},
	{startTime, "podrun", "", 5, true},
}

// table returns the medians: a row for each quantity, a column for each network. It has no rows for networks that
// were not measured.
func (f figures) table(title string, columns []string) measure.Table {
	t := measure.Table{Head: append([]string{title}, columns...)}
	for _, what := range slices.Sorted(maps.Keys(f)) {
		cells, empty := []string{what}, true
		for _, c := range columns {
			cell := ""
			if list := f[what][c]; len(list) > 0 {
				cell, empty = fmt.Sprintf("%.4g", measure.Median(list)), false
			}
			cells = append(cells, cell)
		}
		if !empty {
			t.Add(cells...)
		}
	}
	return t
}

// nodeTable is the table of the networks between nodes, with podrun's part of the others' figures.
func (f figures) nodeTable(title string) measure.Table {
	t := f.table(title, nodeColumns)
	for _, other := range nodeColumns[1:] {
		t.Head = append(t.Head, "podrun / "+other)
		for i, cells := range t.Rows {
			t.Rows[i] = append(cells, ratio(f[cells[0]][nodesPodrun], f[cells[0]][other]))
		}
	}
	return t
}

// ratio returns the median of the ratios of two networks' figures. Figures of one round are compared, because they
// have been measured one after the other.
func ratio(ours, theirs []float64) string {
	var each []float64
	for i := range min(len(ours), len(theirs)) {
		if theirs[i] > 0 {
			each = append(each, ours[i]/theirs[i])
		}
	}
	if len(each) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", measure.Median(each))
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
	for _, t := range []measure.Table{f.table("network, medians", podColumns), f.targetTable(), f.nodeTable("between nodes, medians")} {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintln(out)
		if err := t.Print(out); err != nil {
			return err
		}
	}
	return nil
}

// verdict is the result for a target.
type verdict struct{ target, result string }

// verdicts returns none if the networks that the targets concern were not to be measured.
func (f figures) verdicts() (list []verdict) {
	if len(f[startTime]) == 0 {
		return nil
	}
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
	medians, met, nodes := f.table("", podColumns), f.targetTable(), f.nodeTable("")
	return "Between a pod and a second host on a pair of devices; *veth* is such a pair alone, what the kernel\ncan do. Medians; of round trips and connections, medians of slices that each network has in alternation.\n\n" +
		medians.Markdown() + "\n" + met.Markdown() +
		"\nBetween pods of two nodes, the same two hosts: podrun's WireGuard (`podrun node --pod-network wireguard`), the kernel's (as\n" +
		"flannel's backend wireguard), if this kernel has it, and routes without encapsulation (as flannel's backend host-gw), for which a\n" +
		"pair of devices passes 64 KiB at once. Processor time is of both ends' programs and of the kernel's threads. Ratios are medians of each round's.\n\n" +
		nodes.Markdown()
}
