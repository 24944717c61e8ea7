package podview

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/report"
)

// NoResources returns kubectl's message for an empty list.
func NoResources(namespace string, everywhere bool) string {
	if everywhere {
		return "No resources found"
	}
	return fmt.Sprintf("No resources found in %s namespace.", namespace)
}

// Table is a table that grows: later rows keep the column widths of earlier ones. As in kubectl there are
// three spaces between columns, and none after the last. Cells are escaped; an empty one is <none>.
type Table struct{ widths []int }

// Print prints rows.
func (s *Table) Print(out io.Writer, rows [][]string) error {
	_, err := io.WriteString(out, s.Text(rows))
	return err
}

// Text formats rows.
func (s *Table) Text(rows [][]string) string {
	for _, row := range rows {
		for i := range row {
			row[i] = report.Escape(row[i])
			if row[i] == "" {
				row[i] = "<none>"
			}
			if i == len(s.widths) {
				s.widths = append(s.widths, 0)
			}
			s.widths[i] = max(s.widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", s.widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
