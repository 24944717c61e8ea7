package output

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/testenv"
)

// At any time a replay equals what was received live: lines in the file, in a rotated file, split lines,
// and unfinished ones.
func TestReplayIsWhatWasReceived(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	l, err := OpenLog(LogConfig{Dir: dir, Limits: crilog.Limits{MaxBytes: 20_000, MaxFiles: 100}, inFlight: filepath.Join(dir, "flight")}, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	heard, written := map[string]string{}, map[string]string{}
	came := make(chan struct{}, 1)
	l.OnData = func(stream string, b []byte) {
		heard[stream] += string(b)
		select {
		case came <- struct{}{}:
		default:
		}
	}
	compare := func() (all bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		again := map[string]string{}
		if err := l.replay(func(stream string, b []byte) { again[stream] += string(b) }); err != nil {
			t.Fatal(err)
		}
		for stream, text := range heard {
			if again[stream] != text {
				t.Fatalf("%s: %d bytes are told again of %d that were heard", stream, len(again[stream]), len(text))
			}
		}
		return heard["stdout"] == written["stdout"] && heard["stderr"] == written["stderr"]
	}
	stdout, err := l.Pipe("stdout")
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := l.Pipe("stderr")
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"one\n", "half", " a line\n", "\n", "\r", strings.Repeat("x", maxLine), strings.Repeat("y\n", 9000), strings.Repeat("z", 3*maxLine+5), "\nnull \x00", "end"} {
		pipe, stream := stdout, "stdout"
		if i%3 == 2 {
			pipe, stream = stderr, "stderr"
		}
		written[stream] += text
		if _, err := pipe.WriteString(text); err != nil {
			t.Fatal(err)
		}
		for !compare() {
			<-came
		}
	}
	stdout.Close()
	stderr.Close()
	l.Drain()
	if !compare() {
		t.Error("not all was heard")
	}
}
