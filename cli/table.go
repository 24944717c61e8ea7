package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/podrun/podrun/internal/report"
)

// table prints rows in columns, as kubectl does: three spaces between columns,
// nothing after the last. Cells are escaped; an empty one is <none>.
func (f *front) table(rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i] = report.Escape(row[i])
			if row[i] == "" {
				row[i] = "<none>"
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		b.WriteString("\n")
	}
	_, err := f.out.Write([]byte(b.String()))
	return err
}
