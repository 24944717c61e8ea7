package cli

import "github.com/podrun/podrun/cli/internal/reading"

// table prints rows in columns.
func (f *front) table(rows [][]string) error { return (&reading.Sheet{}).Print(f.out, rows) }
