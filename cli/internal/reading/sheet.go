package reading

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/report"
)

// Sheet is a table that grows: later rows keep to the columns of earlier ones.
// As by kubectl there are three spaces between columns, and nothing after the last. Cells are
// escaped; an empty one is <none>.
type Sheet struct{ widths []int }

// Print writes rows.
func (s *Sheet) Print(out io.Writer, rows [][]string) error {
	_, err := io.WriteString(out, s.Text(rows))
	return err
}

// Text are rows as they are written.
func (s *Sheet) Text(rows [][]string) string {
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
