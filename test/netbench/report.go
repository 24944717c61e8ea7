package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// columns are in the order of the table.
var columns = []string{"veth", "podrun", "pasta", "slirp4netns", "pod to pod", "pod to pod, IPv6"}

// targets are the project's own: podrun's median is at least, or with at most set at most, so many
// times another network's, or an absolute value.
var targets = []struct {
	what, way, than string
	factor          float64
	most            bool
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

func (f figures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nnetwork, medians\t")
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c)
	}
	fmt.Fprintln(w)
	for _, what := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(w, "%s\t", what)
		for _, c := range columns {
			if list := f[what][c]; len(list) > 0 {
				fmt.Fprintf(w, "%.4g\t", middle(list))
			} else {
				fmt.Fprint(w, "\t")
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, v := range f.verdicts() {
		fmt.Fprintf(w, "%s\t%s\t\n", v.bar, v.result)
	}
	w.Flush()
}

// verdict is the result for a target.
type verdict struct{ bar, result string }

func (f figures) verdicts() (list []verdict) {
	for _, b := range targets {
		value, bound, of := middle(f[b.what][b.way]), b.factor, ""
		if b.than != "" {
			bound, of = b.factor*middle(f[b.what][b.than]), fmt.Sprintf(" (%.2g of %s)", b.factor, b.than)
		}
		word, met := "at least", value >= bound
		if b.most {
			word, met = "at most", value <= bound
		}
		result := map[bool]string{true: "met", false: "missed"}[met]
		switch {
		case len(f[b.what][b.way]) == 0:
			result = "not measured"
		case b.than != "" && len(f[b.what][b.than]) == 0:
			result = b.than + " broke"
		}
		list = append(list, verdict{fmt.Sprintf("%s, %s: %.4g, %s %.4g%s", b.way, b.what, value, word, bound, of), result})
	}
	return list
}

// page returns the same as Markdown.
func (f figures) page() string {
	var b strings.Builder
	b.WriteString("Between a pod and a second host on a pair of devices; *veth* is such a pair alone, what the kernel\ncan do. Medians; of turns and connections, those of slices that each way has in alternation.\n\n| | " + strings.Join(columns, " | ") + " |\n|---" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, what := range slices.Sorted(maps.Keys(f)) {
		b.WriteString("| " + what + " |")
		for _, c := range columns {
			if list := f[what][c]; len(list) > 0 {
				fmt.Fprintf(&b, " %.4g", middle(list))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| to be reached | |\n|---|---|\n")
	for _, v := range f.verdicts() {
		fmt.Fprintf(&b, "| %s | %s |\n", v.bar, v.result)
	}
	return b.String()
}
