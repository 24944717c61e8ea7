package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// records returns the parsed entries of the log at path.
func records(t *testing.T, path string) (records [][3]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)$`)
	for text := range strings.Lines(string(b)) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil {
			t.Fatalf("not a CRI log line: %q", text)
		}
		records = append(records, [3]string{m[1], m[2], m[3]})
	}
	return records
}

func testLog(t *testing.T, path string) LogConfig {
	t.Helper()
	attempt, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".log"))
	if err != nil {
		t.Fatal(err)
	}
	return LogConfig{
		Dir: filepath.Dir(path), attempt: attempt, Limits: limits(&pod.Plan{}),
		inFlight: filepath.Join(t.TempDir(), "flight"),
	}
}

func TestLogRecords(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	tests := []struct {
		name, in string
		want     [][3]string
	}{
		{"nothing", "", nil},
		{"lines", "a\n\nb\n", [][3]string{{"stdout", "F", "a"}, {"stdout", "F", ""}, {"stdout", "F", "b"}}},
		{"no newline at the end", "a\nb", [][3]string{{"stdout", "F", "a"}, {"stdout", "P", "b"}}},
		{"a long line is split", long + "y\n", [][3]string{{"stdout", "P", long}, {"stdout", "F", "y"}}},
		{"a forged record is content", "2026-01-01T00:00:00.000000000Z stderr F x\r\n", [][3]string{{"stdout", "F", "2026-01-01T00:00:00.000000000Z stderr F x\r"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NoLeaks(t)
			path := filepath.Join(t.TempDir(), "c", "0.log")
			l, err := OpenLog(testLog(t, path), func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			w, err := l.Pipe("stdout")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(tt.in); err != nil {
				t.Fatal(err)
			}
			w.Close()
			l.Drain()
			if diff := cmp.Diff(tt.want, records(t, path)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// Both streams at once, in many small and large writes: no line is lost, torn or out of order within its
// stream.
func TestLogKeepsEveryLineOfTwoStreams(t *testing.T) {
	testenv.NoLeaks(t)
	const lines = 50_000
	path := filepath.Join(t.TempDir(), "0.log")
	l, err := OpenLog(testLog(t, path), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"stdout", "stderr"} {
		w, err := l.Pipe(stream)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer w.Close()
			var batch bytes.Buffer
			for i := range lines {
				fmt.Fprintf(&batch, "%s %d\n", stream, i)
				if i%97 == 0 || i == lines-1 {
					w.Write(batch.Bytes())
					batch.Reset()
				}
			}
		}()
	}
	l.Drain()
	next := map[string]int{}
	for _, r := range records(t, path) {
		if want := fmt.Sprintf("%s %d", r[0], next[r[0]]); r[2] != want || r[1] != "F" {
			t.Fatalf("record %v, want text %q", r, want)
		}
		next[r[0]]++
	}
	if next["stdout"] != lines || next["stderr"] != lines {
		t.Errorf("lines %v, want %d of each", next, lines)
	}
}

func TestLogTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "2026-01-01T00:00:00.000000000Z stderr F line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Tail(filepath.Dir(path), 0)
	if !strings.HasPrefix(got, "line 20\n") || !strings.HasSuffix(got, "line 99\n") {
		t.Errorf("tail %q, want lines 20 to 99", got)
	}
}

// A full disk loses log lines, which is reported at once; the writer never blocks, and what is written when
// there is space again is whole.
func TestLogOnFullDisk(t *testing.T) {
	testenv.NoLeaks(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	l, err := OpenLog(testLog(t, filepath.Join(dir, "0.log")), func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 2)
	l.NotifyLoss(func() { told <- l.LossWarning("app") })
	missing := make(chan int64, 2)
	l.NotifyMissing(func(lines int64, err error) {
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("the error of the missing lines is %v", err)
		}
		missing <- lines
	})
	w, err := l.Pipe("stdout")
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 { // 4 MB, far more than the disk and a pipe hold
		if _, err := w.Write(bytes.Repeat([]byte("x\n"), 2048)); err != nil {
			t.Fatal(err)
		}
	}
	want := "output of container app was lost: write log: write " + filepath.Join(dir, "0.log") + ": no space left on device"
	select {
	case got := <-told:
		if got != want {
			t.Errorf("it tells %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told while the container runs")
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("there is room\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	l.Drain()
	if len(told) > 0 {
		t.Error("it tells of one loss twice")
	}
	entries := records(t, filepath.Join(dir, "0.log")) // fails on a torn one
	if last := entries[len(entries)-1]; last[2] != "there is room" {
		t.Errorf("the last record is %q", last)
	}
	var written, marked int64
	for _, e := range entries[:len(entries)-1] {
		if n := int64(0); e[2] == "x" {
			written++
		} else if _, err := fmt.Sscanf(e[2], "podrun: %d lines are missing here, which could not be written", &n); err != nil {
			t.Errorf("record %q", e)
		} else {
			marked += n
		}
	}
	reported := int64(0)
	for written+reported < 1000*2048 {
		select {
		case n := <-missing:
			reported += n
		case <-time.After(time.Minute):
			t.Fatalf("%d lines are in the log and %d are reported as missing, of %d", written, reported, 1000*2048)
		}
	}
	if written+reported != 1000*2048 || marked != reported {
		t.Errorf("%d lines are in the log, %d are reported as missing, %d are marked, of %d", written, reported, marked, 1000*2048)
	}
}

// BenchmarkLog measures how fast a container can write: lines of 100 bytes, rotation included.
func BenchmarkLog(b *testing.B) {
	dir := b.TempDir()
	l, err := OpenLog(LogConfig{Dir: dir, Limits: limits(&pod.Plan{}), inFlight: filepath.Join(dir, "flight")}, func([]byte) {})
	if err != nil {
		b.Fatal(err)
	}
	w, err := l.Pipe("stdout")
	if err != nil {
		b.Fatal(err)
	}
	block := bytes.Repeat(append(bytes.Repeat([]byte("x"), 99), '\n'), 1000)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := w.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	l.Drain()
}

// TestLogOfPipesThatStayOpen: a container that has sent its end of an output to another container has
// exited all the same. What it wrote is in the log, including a half line at the end; what the other one
// writes is not waited for.
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
			l, err := OpenLog(testLog(t, path), func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			w, err := l.Pipe("stdout")
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
					for err := error(nil); err == nil; { // until the read end is closed
						_, err = io.WriteString(w, strings.Repeat("more\n", 1000))
					}
				}()
			}
			done := make(chan struct{})
			go func() {
				l.WritersGone()
				l.Drain()
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
