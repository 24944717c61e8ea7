package scriptcmd

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseTable(t *testing.T) {
	got, err := ParseTable("a text\n\n## A\n% x y\n### get: done\n$ get a\n? 0 ^b c$\n### set env: hint\n& set\n2 x\n")
	if want := "[{A [{  % x y 0  false} {get done $ get a 0 ^b c$ true} {set env hint & set 2 x false}]}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	for text, want := range map[string]string{
		"## A\n### get\n":     "a verb has a status",
		"## A\n$ a\n$ b\n":    "line 3: the line before has no result",
		"## A\n0 x\n":         "it is neither",
		"## A\n$ a\nzero x\n": "a result begins with the exit code",
	} {
		if _, err := ParseTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
