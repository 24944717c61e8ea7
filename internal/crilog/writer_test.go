package crilog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = FormatTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))

func writer(t interface{ Fatal(...any) }, dir string, attempt int, limits Limits) *Writer {
	w, err := OpenWriter(dir, attempt, limits)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Reading returns what was written, with rotation at any size and writers that take turns. The log
// on disk never exceeds its limits.
func TestWriterRotates(t *testing.T) {
	root := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, fmt.Sprint(runs))
		limits := Limits{MaxBytes: int64(rapid.IntRange(1, 2000).Draw(t, "bytes")), MaxFiles: rapid.IntRange(2, 6).Draw(t, "files")}
		w := writer(t, dir, 0, limits)
		var all []string
		longest := 0
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			var batch []byte
			for range rapid.IntRange(1, 5).Draw(t, "entries") {
				text := strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "length")) + fmt.Sprint(len(all))
				size := len(batch)
				batch = Append(batch, noon, "stdout", false, []byte(text))
				longest = max(longest, len(batch)-size)
				all = append(all, "stdout F "+text)
			}
			if n, err := w.Write(batch); n != len(batch) || err != nil {
				t.Fatal(n, err)
			}
			if rapid.IntRange(0, 9).Draw(t, "successor") == 0 {
				w.Close()
				w = writer(t, dir, 0, limits)
			}
			bound(t, dir, limits, longest)
		}
		w.Close()
		var k keep
		if err := Read(dir, 0, All, &k); err != nil {
			t.Fatal(err)
		}
		if len(k.lines) == 0 {
			t.Fatal("nothing was kept")
		}
		if d := cmp.Diff(all[len(all)-len(k.lines):], k.lines); d != "" {
			t.Fatal(d)
		}
		tail := rapid.IntRange(0, len(k.lines)).Draw(t, "tail")
		var last keep
		if err := Read(dir, 0, Selection{Tail: tail}, &last); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(k.lines[len(k.lines)-tail:], append([]string{}, last.lines...)); d != "" {
			t.Fatalf("tail %d: %s", tail, d)
		}
	})
}

func bound(t *rapid.T, dir string, limits Limits, longest int) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > limits.MaxFiles {
		t.Fatalf("%d files, allowed %d (%v)", len(files), limits.MaxFiles, err)
	}
	for _, f := range files {
		st, err := f.Info()
		if err != nil || st.Size() > limits.MaxBytes+int64(longest) {
			t.Fatalf("%s has %d bytes, allowed %d and one entry (%v)", f.Name(), st.Size(), limits.MaxBytes, err)
		}
	}
}

// A writer is killed in the middle of an entry, at its limit. A successor that has the rest
// completes the entry in the same file; one without the rest terminates it.
func TestWriterCompletesATornEntry(t *testing.T) {
	entry := Append(nil, noon, "stdout", false, []byte("hello"))
	for cut := 1; cut < len(entry); cut++ {
		for name, rest := range map[string][]byte{"completed": entry[cut:], "mended": nil} {
			dir := t.TempDir()
			w := writer(t, dir, 0, Limits{MaxBytes: 10, MaxFiles: 2})
			if _, err := w.Write(entry[:cut]); err != nil {
				t.Fatal(err)
			}
			w.Close()
			w = writer(t, dir, 0, Limits{MaxBytes: 10, MaxFiles: 2})
			if _, err := w.Write(rest); err != nil {
				t.Fatal(err)
			}
			if err := w.CompletePartial(); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(entry); err != nil {
				t.Fatal(err)
			}
			w.Close()
			want := append(append([]byte{}, entry[:cut]...), rest...)
			if rest == nil {
				want = append(want, '\n')
			}
			got, err := os.ReadFile(filepath.Join(dir, "0.log.1"))
			if err != nil {
				got, err = os.ReadFile(filepath.Join(dir, "0.log"))
				want = append(want, entry...)
			}
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("cut at %d, %s: %q, want %q (%v)", cut, name, got, want, err)
			}
		}
	}
}

// Deleting log files by hand loses their lines, and none that are written later.
func TestWriterOutlivesItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	w := writer(t, dir, 0, Limits{MaxBytes: 1, MaxFiles: 3})
	for i := range 5 {
		if i == 2 {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Write(Append(nil, noon, "stdout", false, fmt.Append(nil, i))); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	var k keep
	if err := Read(dir, 0, All, &k); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"stdout F 2", "stdout F 3", "stdout F 4"}, k.lines); d != "" {
		t.Error(d)
	}
}

// Prune keeps the last dead instance, with all its files.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0.log", "2.log", "2.log.1", "4.log.7", "5.log", "5.log.1", "note", "01.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Prune(dir, 5); err != nil {
		t.Fatal(err)
	}
	var left []string
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		left = append(left, f.Name())
	}
	if d := cmp.Diff([]string{"01.log", "4.log.7", "5.log", "5.log.1", "note"}, left); d != "" {
		t.Error(d)
	}
}

// While a log is written, rotated ten times a second and followed, no line is lost or read twice,
// also across restarts of the container.
func TestFollowOverRotation(t *testing.T) {
	dir := t.TempDir()
	done := make(chan struct{})
	k := &keep{flushed: make(chan int, 1)}
	missed := false
	f := &Follower{Dir: dir, Selection: All, Wake: ticker(t), Done: done, Sink: k, OnSkipped: func() { missed = true }}
	ended := make(chan error, 1)
	go func() { ended <- f.Run(t.Context()) }()
	const lines, restarts = 100_000, 3
	n := 0
	for attempt := range restarts {
		w := writer(t, dir, attempt, Limits{MaxBytes: 100 << 10, MaxFiles: 5})
		for n < lines*(attempt+1)/restarts {
			var batch []byte
			for range 100 {
				batch = Append(batch, noon, "stdout", false, fmt.Appendf(nil, "line %d", n))
				n++
			}
			if _, err := w.Write(batch); err != nil {
				t.Fatal(err)
			}
			if n%1000 == 0 { // keeps the writer from outrunning the reader by more than the limits keep
				until(t, k.flushed, n-2000)
			}
		}
		w.Close()
	}
	close(done)
	wait(t, ended)
	if len(k.lines) != n || missed {
		t.Fatalf("%d lines of %d arrived, missed %v", len(k.lines), n, missed)
	}
	for i, line := range k.lines {
		if want := fmt.Sprintf("stdout F line %d", i); line != want {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// slow is a Sink that blocks until the test releases it.
type slow struct {
	keep
	began, release chan struct{}
}

func (s *slow) Entry(e Entry) error {
	if len(s.lines) == 0 {
		close(s.began)
		<-s.release
	}
	return s.keep.Entry(e)
}

// A blocked reader does not block the writer and keeps no more on disk than the file that it reads.
// It is notified of missing lines.
func TestFollowOfAStalledReader(t *testing.T) {
	dir := t.TempDir()
	limits := Limits{MaxBytes: 1000, MaxFiles: 3}
	w := writer(t, dir, 0, limits)
	done := make(chan struct{})
	s := &slow{began: make(chan struct{}), release: make(chan struct{})}
	missed := 0
	f := &Follower{Dir: dir, Selection: All, Wake: ticker(t), Done: done, Sink: s, OnSkipped: func() { missed++ }}
	ended := make(chan error, 1)
	go func() { ended <- f.Run(t.Context()) }()
	for i := range 1000 {
		if _, err := w.Write(Append(nil, noon, "stdout", false, fmt.Appendf(nil, "line %d", i))); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-s.began
		}
	}
	w.Close()
	close(s.release)
	close(done)
	wait(t, ended)
	if missed != 1 || s.lines[len(s.lines)-1] != "stdout F line 999" || len(s.lines) > 100 {
		t.Errorf("missed %d times, %d lines, the last is %q", missed, len(s.lines), s.lines[len(s.lines)-1])
	}
}

func TestReadSince(t *testing.T) {
	dir := t.TempDir()
	w := writer(t, dir, 0, Limits{MaxBytes: 100, MaxFiles: 9})
	moment := func(s int) time.Time { return time.Date(2026, 1, 2, 12, 0, s, 0, time.UTC) }
	stamp := func(s int) []byte { return FormatTime(moment(s)) }
	var b []byte
	b = Append(b, stamp(0), "stdout", false, []byte("old"))
	b = Append(b, stamp(1), "stdout", true, []byte("begun before"))
	b = Append(b, stamp(2), "stderr", true, []byte("begun "))
	b = Append(b, stamp(3), "stdout", false, []byte(", ended after"))
	b = Append(b, stamp(1), "stderr", false, []byte("and ended when the clock was set back"))
	b = Append(b, stamp(1), "stdout", false, []byte("the clock is wrong"))
	b = Append(b, stamp(4), "stdout", false, []byte("new"))
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var k keep
	if err := Read(dir, 0, Selection{Tail: -1, Since: moment(2)}, &k); err != nil {
		t.Fatal(err)
	}
	want := []string{"stderr P begun ", "stderr F and ended when the clock was set back", "stdout F new"}
	if d := cmp.Diff(want, k.lines); d != "" {
		t.Error(d)
	}
}

// TestSinceSkipsFiles: a file that was written before the moment is not read, whatever the clock was when its lines were written.
func TestSinceSkipsFiles(t *testing.T) {
	dir := t.TempDir()
	w := writer(t, dir, 0, Limits{MaxBytes: 10, MaxFiles: 9})
	for _, text := range []string{"first", "second", "third"} {
		if _, err := w.Write(Append(nil, noon, "stdout", false, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	at, err := time.Parse(time.RFC3339Nano, string(noon))
	if err != nil {
		t.Fatal(err)
	}
	for name, written := range map[string]time.Time{"0.log.1": at.Add(-time.Minute), "0.log.2": at, "0.log": at.Add(-time.Minute)} {
		if err := os.Chtimes(filepath.Join(dir, name), written, written); err != nil {
			t.Fatal(err)
		}
	}
	for tail, want := range map[int][]string{-1: {"stdout F second", "stdout F third"}, 1: {"stdout F third"}, 9: {"stdout F second", "stdout F third"}} {
		var k keep
		if err := Read(dir, 0, Selection{Tail: tail, Since: at}, &k); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, k.lines); d != "" {
			t.Errorf("the last %d lines:\n%s", tail, d)
		}
	}
}

// BenchmarkSince reads the last lines of a log of 50 MB in one file.
func BenchmarkSince(b *testing.B) {
	dir := b.TempDir()
	var log []byte
	line := bytes.Repeat([]byte("x"), 60)
	for len(log) < 50_000_000 {
		log = Append(log, noon, "stdout", false, line)
	}
	if err := os.WriteFile(filepath.Join(dir, "0.log"), log, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Read(dir, 0, Selection{Tail: -1, Since: time.Now()}, &keep{}); err != nil {
			b.Fatal(err)
		}
	}
}
