package tty

import (
	"os"
	"strings"
	"testing"
)

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext, café":                     "plain\ttext, café",
		"dos\r":                                 "dos",
		"over\rwrite":                           `over\rwrite`,
		"\x1b[1;31mred\x1b[0m ok":               "\x1b[1;31mred\x1b[0m ok" + Reset,
		"\x1b[38:5:9mcolon":                     "\x1b[38:5:9mcolon" + Reset,
		"\x1b[2Jclear":                          `\u001b[2Jclear`,
		"\x1b]52;c;aGk=\x07":                    `\u001b]52;c;aGk=\u0007`,
		"\x1b":                                  `\u001b`,
		"\x1b[" + strings.Repeat("1", 40) + "m": `\u001b[` + strings.Repeat("1", 40) + "m",
		"c1 \u009b2J \xff":                      `c1 \u009b2J \xff`,
	} {
		if got := string(Safe([]byte(in))); got != want {
			t.Errorf("Safe(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestColour(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(key string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == key {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	for name, tc := range map[string]struct {
		env  func(string) string
		want bool
	}{
		"a pipe":                  {env(), false},
		"a pipe, forced":          {env("CLICOLOR_FORCE", "1"), true},
		"forced off":              {env("CLICOLOR_FORCE", "0"), false},
		"NO_COLOR beats forcing":  {env("CLICOLOR_FORCE", "1", "NO_COLOR", "1"), false},
		"a dumb terminal, forced": {env("CLICOLOR_FORCE", "1", "TERM", "dumb"), false},
	} {
		if got := Colour(w, tc.env); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestNthIsStable(t *testing.T) {
	if Nth(0) != Nth(len(palette)) || Nth(0) == Nth(1) {
		t.Error("colours do not repeat after the palette, or neighbours share one")
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext, café":       "plain\ttext, café",
		"dos\r":                   "dos",
		"\x1b[1;31mred\x1b[0m ok": "red ok",
		"\x1b[\x1b[0m31mnested":   `\u001b[31mnested`,
		"\x1b[2Jclear":            `\u001b[2Jclear`,
	} {
		if got := string(Plain([]byte(in))); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}
