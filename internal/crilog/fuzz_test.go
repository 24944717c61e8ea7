package crilog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzRead: any log is read to its end, and a valid line is read as it was written.
func FuzzRead(f *testing.F) {
	f.Add([]byte(stamp+" stdout F one\n"+stamp+" stderr P part\n"), 1)
	f.Add([]byte(stamp+" stdout F:x one\n\n \n   \nnothing\n"), 3)
	f.Add([]byte("\x00\xff no end"), 0)
	f.Add([]byte(stamp+" stdout P"+strings.Repeat("x", 70_000)), 2)
	f.Fuzz(func(t *testing.T, data []byte, tail int) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "0.log"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		all := &keep{}
		if err := Read(dir, 0, All, all); err != nil {
			t.Fatal(err)
		}
		last := &keep{}
		if tail = tail & 0xff; tail >= 0 {
			if err := Read(dir, 0, Selection{Tail: tail, Since: time.Unix(0, 0)}, last); err != nil {
				t.Fatal(err)
			}
		}
		if len(last.lines) > len(all.lines) {
			t.Fatalf("the last %d lines are %d of %d", tail, len(last.lines), len(all.lines))
		}
		text, _, _ := bytes.Cut(data, []byte("\n"))
		line := Append(nil, []byte(stamp), "stderr", true, text)
		e, err := parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || !e.Partial || e.Stream != "stderr" || !bytes.Equal(e.Text, text) || string(e.Time) != stamp {
			t.Fatal(fmt.Errorf("%q is read as %+v, %w", line, e, err))
		}
	})
}
