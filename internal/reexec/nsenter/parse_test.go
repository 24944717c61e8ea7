package nsenter_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/protocol"
	"github.com/podrun/podrun/internal/reexec/cparser"
)

const parsers = "testdata/parse.c"

// What the pod program reads of others: see parse.c for the kinds and the answers.
var parses = []struct {
	name  string
	kind  byte
	input string
	want  string
}{
	{"no message", 'm', "", "|0|0|0|0|0|0"},
	{"the pod has ended", 'm', protocol.MsgFinished + " 7", "|1|7|0|0|0|0"},
	{"a hibernation", 'm', protocol.MsgHibernate + " 9000000000 20000 3", "|0|0|1|9000000000|20000|3"},
	{"a hibernation without all its numbers", 'm', protocol.MsgHibernate + " 1 2", "|0|0|0|1|2|0"},
	{"messages about state", 'm', protocol.MsgDrop + " a\n" + protocol.MsgForget + " 1 2\n" + protocol.MsgForget + " 1", "state|state||0|0|0|0|0|0"},
	{"an unknown message", 'm', "fly", "|0|0|0|0|0|0"},
	{"a long name", 'm', protocol.MsgDrop + " " + strings.Repeat("x", 1000), "state|0|0|0|0|0|0"},

	{"a pod", 'f', "podrun\x00_supervisor\x00\x00A=b\x00C=\x00", "podrun|_supervisor||A=b|C="},
	{"an argument that does not end", 'f', "podrun", "podrun|"},
	{"too many arguments", 'f', strings.Repeat("a\x00", protocol.MaxFirstArgs) + "\x00A=b\x00", strings.Repeat("a|", protocol.MaxFirstArgs)},

	{"a unit loop", 'u', "9 -1 2 4 5 6", "9|-1|2|1|4|5|6"},
	{"a unit loop without pods", 'u', "9 3 0", "9|3|0|0"},
	{"a word that is no number", 'u', "9 3 1 x 4", "9|3|0|0"},
	{"more descriptors than a process may have", 'u', "9 3 0" + strings.Repeat(" 5", 2000), "9|3|0|1000" + strings.Repeat("|5", 1000)},

	{"a ping", 'n', protocol.NotifyWatchdog, "1|0|"},
	{"a status", 'n', protocol.NotifyStatus + "Running 1/1", "1|1|Running 1/1"},
	{"a long status", 'n', protocol.NotifyStatus + strings.Repeat("x", 1000), "1|1|" + strings.Repeat("x", 159)},

	{"a process", 's', "12 (a) b) S 3 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 42 0 0", "1|12|3|42|a) b"},
	{"a process without a name", 's', "12 S 3", "0|0|0|0|"},
	{"brackets the wrong way", 's', ")(", "0|0|0|0|"},
}

func TestParsers(t *testing.T) {
	p := cparser.New(t, parsers)
	for _, c := range parses {
		if got := strings.Join(p.Parse(t, c.kind, []byte(c.input)), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Only a plain success is one for a prober. The supervisor may take other answers for a success, too.
func TestProberJudgesAnswers(t *testing.T) {
	p := cparser.New(t, parsers)
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                  "1",
		"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\nok":                   "1",
		"HTTP/1.0 299 OK\r\n\r\nok":                                       "1",
		"HTTP/1.1 204 No Content\r\n\r\n":                                 "1",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + long(10<<10): "1",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":  "1",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok":                  "-1", // cut off
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok":                 "-1",
		"HTTP/1.1 200 OK\r\nContent-Length: " + long(30) + "\r\n\r\nok":   "-1",
		"HTTP/1.1 200 OK\r\nX: " + long(4096) + "\r\n\r\n":                "-1",
		"HTTP/1.1 200 OK\r\n":                                             "-1",
		"HTTP/1.1 2000 OK\r\n\r\n":                                        "-1",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n":            "-1",
		"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n":                       "-1",
		"HTTP/1.1 500 No\r\n\r\n":                                         "-1",
		"HTTP/2.0 200 OK\r\n\r\n":                                         "-1",
		"SSH-2.0-OpenSSH\r\n":                                             "-1",
		"HTTP/1.1 200 OK\r\n\x00Content-Length: 5\r\n\r\n":                "-1",
	} {
		if got := p.Parse(t, 'a', []byte(answer))[0]; got != want {
			t.Errorf("%.60q: %s, want %s", answer, got, want)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

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
		if kind != 'u' {
			return
		}
		pods, _ := strconv.Atoi(answer[2])
		wakers, _ := strconv.Atoi(answer[3])
		if len(answer) != 4+pods+wakers {
			t.Errorf("%q", answer)
		}
	})
}

func FuzzAnswerOfServer(f *testing.F) {
	p := cparser.New(f, parsers)
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if len(answer) > 2000 {
			return // it is parsed once for each byte
		}
		if p.Parse(t, 'a', answer)[0] == "1" && !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Errorf("%q is a success", answer)
		}
	})
}
