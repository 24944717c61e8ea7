// Package describe prints everything about one object: in the form, the order and the words of kubectl
// describe (k8s.io/kubectl/pkg/describe), followed by the fields that only this machine has.
package describe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/report"
)

const none = "<none>"

// Field is a name and a value that podrun adds to a page, such as the cgroup of a pod.
type Field struct{ Name, Value string }

// page is a text in columns. Everything that is written to it is escaped.
type page struct {
	text  strings.Builder
	tabs  *tabwriter.Writer
	clock time.Time
	inner bool // the text is a pod's, inside the page of its workload
}

func newPage(now time.Time) *page {
	p := &page{clock: now}
	p.tabs = tabwriter.NewWriter(&p.text, 0, 8, 2, ' ', 0)
	return p
}

// row writes cells. level is the indentation of the first. An empty cell at the end keeps the one before it
// in its column.
func (p *page) row(level int, cells ...string) {
	for i := range cells {
		cells[i] = report.Escape(cells[i])
	}
	indent := strings.Repeat("  ", level)
	if p.inner && level < 2 { // as in kubectl: the fields of its containers have the same columns as in a pod
		indent = strings.Repeat(" ", 2+level)
	}
	fmt.Fprintf(p.tabs, "%s%s\n", indent, strings.Join(cells, "\t"))
}

// rowIfSet writes a value unless it is unset.
func rowIfSet[T any](p *page, level int, title string, value *T, format string) {
	if value != nil {
		p.row(level, title, fmt.Sprintf(format, *value))
	}
}

// Columns returns rows of cells in columns, as on a page.
func Columns(rows [][]string) string {
	p := newPage(time.Time{})
	for _, r := range rows {
		p.row(0, r...)
	}
	return p.String()
}

func (p *page) String() string {
	p.tabs.Flush()
	return p.text.String()
}

// list writes values under a title: one per line, the first beside the title.
func (p *page) list(title string, values []string) {
	if len(values) == 0 {
		values = []string{none}
	}
	for _, v := range values {
		p.row(0, title, v)
		title = ""
	}
}

// lines writes each line of texts as a line of its own.
func (p *page) lines(level int, title string, texts []string) {
	if len(texts) == 0 {
		return
	}
	p.row(level, title)
	for _, text := range texts {
		for _, line := range strings.Split(text, "\n") {
			p.row(level+1, line)
		}
	}
}

// labels returns label=value, sorted.
func labels(m map[string]string) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, key+"="+m[key])
	}
	return out
}

// maxAnnotation is the length in bytes at which an annotation is cut.
const maxAnnotation = 140

func (p *page) annotations(m map[string]string) {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key == corev1.LastAppliedConfigAnnotation {
			continue
		}
		value := strings.TrimSuffix(m[key], "\n")
		if len(key)+len(value)+2 <= maxAnnotation && !strings.Contains(value, "\n") {
			out = append(out, key+": "+value)
			continue
		}
		out = append(out, key+":")
		for _, line := range strings.Split(value, "\n") {
			if len(line) > maxAnnotation-2 {
				line = line[:maxAnnotation-2] + "..."
			}
			out = append(out, "  "+line)
		}
	}
	p.list("Annotations:", out)
}

// ago returns how long ago a time was.
func (p *page) ago(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(p.clock.Sub(t))
}

// events writes the last part of a page.
func (p *page) events(events []corev1.Event) {
	if len(events) == 0 {
		p.row(0, "Events:", none)
		return
	}
	p.tabs.Flush() // new columns
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	p.row(0, "Events:")
	p.row(1, "Type", "Reason", "Age", "From", "Message")
	p.row(1, "----", "------", "----", "----", "-------")
	for i := range events {
		e := &events[i]
		age := p.ago(e.FirstTimestamp.Time)
		if e.Count > 1 {
			age = fmt.Sprintf("%s (x%d over %s)", p.ago(e.LastTimestamp.Time), e.Count, age)
		}
		message := strings.TrimSpace(e.Message)
		if e.InvolvedObject.FieldPath != "" {
			message = e.InvolvedObject.FieldPath + ": " + message
		}
		p.row(1, e.Type, e.Reason, age, e.Source.Component, message)
	}
}

// optional returns a flag that defaults to false.
func optional(b *bool) string { return fmt.Sprint(ptr.Deref(b, false)) }
