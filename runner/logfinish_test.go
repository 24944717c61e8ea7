package runner

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testenv"
)

// TestLogOfPipesThatStayOpen: a container that has sent its output's end to another has
// ended all the same, and what it wrote is in the log, to half a line at the end; what
// the other writes is not waited for.
func TestLogOfPipesThatStayOpen(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		endless bool
	}{
		"nothing":       {"", false},
		"lines":         {strings.Repeat("a line\n", 9000) + "half", false},
		"still written": {"first\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			path := filepath.Join(t.TempDir(), "0.log")
			l, err := openLog(testLog(t, path), func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			w, err := l.pipe("stdout")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := io.WriteString(w, test.text); err != nil {
				t.Fatal(err)
			}
			if test.endless {
				over := make(chan struct{})
				defer func() { <-over }()
				go func() {
					defer close(over)
					for err := error(nil); err == nil; { // until nobody reads
						_, err = io.WriteString(w, strings.Repeat("more\n", 1000))
					}
				}()
			}
			done := make(chan struct{})
			go func() {
				l.finish()
				l.drain()
				close(done)
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("it waits for a writer who is none of the container's")
			}
			var got strings.Builder
			for _, r := range records(t, path) {
				got.WriteString(r[2])
				if r[1] == "F" {
					got.WriteByte('\n')
				}
			}
			if !strings.HasPrefix(got.String(), test.text) || !test.endless && got.Len() != len(test.text) {
				t.Errorf("%d bytes %.40q in the log, %d written", got.Len(), got.String(), len(test.text))
			}
		})
	}
}
