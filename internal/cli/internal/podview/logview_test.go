package podview

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/podrun/podrun/internal/crilog"
)

// feed hands entries to a sink: "o" is stdout, "e" stderr, "+" a piece of a line, "!"
// that there is nothing more for now.
func feed(t *testing.T, s crilog.Sink, entries ...string) {
	t.Helper()
	for _, e := range entries {
		if e == "!" {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		stream := map[byte]string{'o': "stdout", 'e': "stderr"}[e[0]]
		if err := s.Entry(crilog.Entry{Stream: stream, Partial: e[1] == '+', Text: []byte(e[2:])}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Finish(s); err != nil {
		t.Fatal(err)
	}
}

func TestLogView(t *testing.T) {
	mixed := []string{"o+half ", "!", "e a whole one", "o a line", "o+no end"}
	for name, tc := range map[string]struct {
		view    *LogWriter
		prefix  string
		entries []string
		want    string
	}{
		"pieces are joined":                     {&LogWriter{}, "", mixed, "a whole one\nhalf a line\nno end"},
		"and have one prefix":                   {&LogWriter{}, "app | ", mixed, "app | a whole one\napp | half a line\napp | no end\n"},
		"a prompt is seen at a terminal":        {&LogWriter{Terminal: true}, "", []string{"o+name: ", "!", "o you"}, "name: you\n"},
		"and is not mixed":                      {&LogWriter{Terminal: true}, "", mixed, "half \na whole one\na line\nno end"},
		"a terminal obeys colours only":         {&LogWriter{Terminal: true}, "", []string{"o \x1b[2Jgone\x1b]52;c;x\a"}, "\\u001b[2Jgone\\u001b]52;c;x\\u0007\n"},
		"unless that is wanted":                 {&LogWriter{Terminal: true, raw: true}, "", []string{"o \x1b[2Jgone\r"}, "\x1b[2Jgone\r\n"},
		"in a pipe everything is as it was":     {&LogWriter{}, "", []string{"o \x1b[2J\x00\xff\r"}, "\x1b[2J\x00\xff\r\n"},
		"an empty line":                         {&LogWriter{}, "", []string{"o ", "o+", "o "}, "\n\n"},
		"a newline that comes alone, with time": {&LogWriter{timestamps: true}, "", []string{"o+a", "o "}, " a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			v := tc.view
			v.out = bufio.NewWriter(&out)
			feed(t, v.Prefixed(tc.prefix), tc.entries...)
			if out.String() != tc.want {
				t.Errorf("shown %q, want %q", out.String(), tc.want)
			}
		})
	}
}
