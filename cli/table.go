package cli

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/report"
)

// table prints rows in columns, as kubectl does: three spaces between columns,
// nothing after the last. Cells are escaped; an empty one is <none>.
func (f *front) table(rows [][]string) error { return (&sheet{}).print(f.out, rows) }

// sheet is a table that grows: later rows keep to the columns of earlier ones.
type sheet struct{ widths []int }

func (s *sheet) print(out io.Writer, rows [][]string) error {
	_, err := io.WriteString(out, s.text(rows))
	return err
}

func (s *sheet) text(rows [][]string) string {
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
