package measure

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table has a head and rows, each a list of cells.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown returns the table as Markdown.
func (t *Table) Markdown() string {
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row(t.Head)
	b.WriteString(strings.Repeat("|---", len(t.Head)) + "|\n")
	for _, cells := range t.Rows {
		row(cells)
	}
	return b.String()
}

// Columns returns a writer of right-aligned columns: a line has its cells with a tab after each.
func Columns(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
}

// Print writes the table as columns.
func (t *Table) Print(out io.Writer) error {
	w := Columns(out)
	for _, cells := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	return w.Flush()
}
