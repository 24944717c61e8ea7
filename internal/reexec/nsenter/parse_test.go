package nsenter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cparser"
	"github.com/podrun/podrun/internal/protocol"
)

const parsers = "testdata/parse.c"

// What the pod program reads of others: see parse.c for the kinds and the answers.
var parses = []struct {
	name  string
	kind  byte
	input string
	want  string
}{
	{"no message", 'm', "", " | 0 0 0 0 0 0"},
	{"the pod has ended", 'm', protocol.MsgFinished + " 7", " | 1 7 0 0 0 0"},
	{"a hibernation", 'm', protocol.MsgHibernate + " 9000000000 20000 3", " | 0 0 1 9000000000 20000 3"},
	{"a hibernation without all its numbers", 'm', protocol.MsgHibernate + " 1 2", " | 0 0 0 1 2 0"},
	{"messages about state", 'm', protocol.MsgDrop + " a\n" + protocol.MsgForget + " 1 2\n" + protocol.MsgForget + " 1", "state|state| | 0 0 0 0 0 0"},
	{"an unknown message", 'm', "fly", " | 0 0 0 0 0 0"},
	{"a long name", 'm', protocol.MsgDrop + " " + strings.Repeat("x", 1000), "state| 0 0 0 0 0 0"},

	{"a pod", 'f', "podrun\x00_supervisor\x00\x00A=b\x00C=\x00", "podrun|_supervisor||A=b|C="},
	{"an argument that does not end", 'f', "podrun", "podrun|"},
	{"too many arguments", 'f', strings.Repeat("a\x00", protocol.MaxFirstArgs) + "\x00A=b\x00", strings.Repeat("a|", protocol.MaxFirstArgs)},

	{"a unit loop", 'u', "9 -1 2 4 5 6", "9 -1 2 1 4 5 6"},
	{"a unit loop without pods", 'u', "9 3 0", "9 3 0 0"},
	{"a word that is no number", 'u', "9 3 1 x 4", "9 3 0 0"},
	{"more descriptors than a process may have", 'u', "9 3 0" + strings.Repeat(" 5", 2000), "9 3 0 1000" + strings.Repeat(" 5", 1000)},

	{"a ping", 'n', protocol.NotifyWatchdog, "1 0 "},
	{"a status", 'n', protocol.NotifyStatus + "Running 1/1", "1 1 Running 1/1"},
	{"a long status", 'n', protocol.NotifyStatus + strings.Repeat("x", 1000), "1 1 " + strings.Repeat("x", 159)},

	{"a process", 's', "12 (a) b) S 3 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 42 0 0", "1 12 3 42 a) b"},
	{"a process without a name", 's', "12 S 3", "0 0 0 0 "},
	{"brackets the wrong way", 's', ")(", "0 0 0 0 "},
}

func TestParsers(t *testing.T) {
	p := cparser.New(t, parsers)
	for _, c := range parses {
		separator := " "
		if c.kind == 'f' {
			separator = "|"
		}
		got := strings.Join(p.Parse(t, c.kind, []byte(c.input)), separator)
		if c.kind == 'm' {
			words := p.Parse(t, c.kind, []byte(c.input))
			lines := len(words) - 6
			for i, w := range words[:lines] {
				if w == "" {
					words[i] = " "
				}
			}
			got = strings.Join(words[:lines], "|") + "| " + strings.Join(words[lines:], " ")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// No input makes a parser read what is not its own.
func FuzzParsers(f *testing.F) {
	p := cparser.New(f, parsers)
	for _, c := range parses {
		f.Add(c.kind, []byte(c.input))
	}
	f.Fuzz(func(t *testing.T, kind byte, input []byte) {
		if !slices.Contains([]byte("mfuns"), kind) || kind == 'n' && len(input) == 0 || len(input) > 10_000 {
			return // an empty message is the end of a socket
		}
		answer := p.Parse(t, kind, input)
		if kind == 'u' && len(answer) != 4+number(t, answer[2])+number(t, answer[3]) {
			t.Errorf("%q", answer)
		}
	})
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return n
}
