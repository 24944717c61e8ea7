package top

import (
	"fmt"
	"strings"
	"testing"
)

func TestFitting(t *testing.T) {
	rows := func() [][]string {
		var rows [][]string
		for i := range 5 {
			rows = append(rows, []string{fmt.Sprint("row", i), "ä b\x1b[2J"})
		}
		return rows
	}
	if got := fitting(rows(), 10, 4); got != "row0   ä b\nrow1   ä b\n… and 3 mo\n" {
		t.Errorf("%q", got)
	}
	if got := fitting(rows(), 0, 0); strings.Count(got, "\n") != 5 || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
