package crilog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const stamp = "2026-10-06T00:17:09.669794202Z"

// keep is a Sink that writes entries as "stream tag text".
type keep struct {
	lines   []string
	flushed chan int // buffered by one: the number of lines at the last flush
}

func (k *keep) Entry(e Entry) error {
	tag := "F"
	if e.Partial {
		tag = "P"
	}
	k.lines = append(k.lines, e.Stream+" "+tag+" "+string(e.Text))
	return nil
}

func (k *keep) Flush() error {
	if k.flushed != nil {
		select {
		case <-k.flushed:
		default:
		}
		k.flushed <- len(k.lines)
	}
	return nil
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Entry{
		stamp + " stdout F hello world": {Time: []byte(stamp), Stream: "stdout", Text: []byte("hello world")},
		stamp + " stderr P ":            {Time: []byte(stamp), Stream: "stderr", Partial: true, Text: []byte("")},
		stamp + " stdout F:x  two":      {Time: []byte(stamp), Stream: "stdout", Text: []byte(" two")},
	} {
		got, err := parse([]byte(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q:\n%s", in, d)
		}
	}
	for _, in := range []string{"", "hello", "now stdout F x", stamp + " stdin F x", stamp + " stdout X x", stamp + " stdout F"} {
		if e, err := parse([]byte(in)); err == nil {
			t.Errorf("%q was taken for %+v", in, e)
		}
	}
}

func TestReadTail(t *testing.T) {
	long := strings.Repeat("x", 100<<10) // longer than the reader's and the tail's blocks
	write(t, t.TempDir(), 0)             // an unrelated directory
	dir := t.TempDir()
	write(t, dir, 3, "stdout F one", "stderr F two", "stdout P th", "stdout P re", "stdout F e", "stdout F "+long, "stdout F five", "stdout P six")
	all := []string{"stdout F one", "stderr F two", "stdout P th", "stdout P re", "stdout F e", "stdout F " + long, "stdout F five", "stdout P six"}
	for tail, from := range map[int]int{-1: 0, 0: 8, 1: 7, 2: 6, 3: 5, 4: 2, 5: 1, 6: 0, 99: 0} {
		var k keep
		if err := Read(dir, 3, Selection{Tail: tail}, &k); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(all[from:], k.lines, cmp.Transformer("len", func(s string) string { return fmt.Sprintf("%.20s %d", s, len(s)) })); d != "" && len(all[from:])+len(k.lines) > 0 {
			t.Errorf("tail %d:\n%s", tail, d)
		}
	}
}

func TestReadOfAKilledWriter(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		end  string
		want []string
	}{
		"in the text":  {stamp + " stdout F hal", []string{"stdout F one", "stdout P hal"}},
		"in the stamp": {stamp[:10], []string{"stdout F one"}},
		"not a log":    {"what is this\n", []string{"stdout F one", "stdout F what is this"}},
	} {
		file := filepath.Join(dir, "0.log")
		if err := os.WriteFile(file, []byte(stamp+" stdout F one\n"+tc.end), 0o600); err != nil {
			t.Fatal(err)
		}
		var k keep
		if err := Read(dir, 0, All, &k); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, k.lines); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestAttempts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"10.log", "2.log", "0.log", "x.log", "-1.log", "1.log.gz", "3"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Attempts(dir)
	if d := cmp.Diff([]int{0, 2, 10}, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if got, err := Attempts(filepath.Join(dir, "none")); got != nil || err != nil {
		t.Errorf("a directory that is not there: %v, %v", got, err)
	}
}

// A container writes 100,000 lines in three instances while it is followed; one attempt in between
// has no log. Every line arrives, once and in order.
func TestFollowLosesNothing(t *testing.T) {
	dir := t.TempDir()
	w := ticker(t)
	done := make(chan struct{})
	k := &keep{}
	f := &Follower{Dir: dir, Selection: All, Wake: w, Done: done, Sink: k}
	ended := make(chan error, 1)
	go func() { ended <- f.Run(t.Context()) }()

	const lines = 100_000
	n := 0
	for _, attempt := range []int{0, 1, 3} {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)))
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewWriterSize(file, 1000) // cuts lines in the middle
		for range lines / 3 {
			fmt.Fprintf(out, "%s stdout F line %d of attempt %d\n", stamp, n, attempt)
			n++
		}
		out.Flush()
		file.Close()
	}
	close(done)
	wait(t, ended)
	if len(k.lines) != n {
		t.Fatalf("%d lines of %d arrived", len(k.lines), n)
	}
	for i, line := range k.lines {
		if want := fmt.Sprintf("stdout F line %d of attempt ", i); !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// A follower reads the existing lines, waits, and reads new ones; the end of its context ends it.
func TestFollowWaits(t *testing.T) {
	dir := t.TempDir()
	w := ticker(t)
	k := &keep{flushed: make(chan int, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	f := &Follower{Dir: dir, Selection: Selection{Tail: 1}, Wake: w, Sink: k}
	write(t, dir, 0, "stdout F old", "stdout F last")
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	until(t, k.flushed, 1)
	appendTo(t, dir, 0, "stdout F added")
	until(t, k.flushed, 2)
	write(t, dir, 1, "stdout F again", "stdout F and again") // the tail applies to the first only
	until(t, k.flushed, 4)
	cancel()
	wait(t, ended)
	want := []string{"stdout F last", "stdout F added", "stdout F again", "stdout F and again"}
	if d := cmp.Diff(want, k.lines); d != "" {
		t.Error(d)
	}
}

// ticker wakes a follower often.
func ticker(t *testing.T) <-chan struct{} {
	wake := make(chan struct{})
	go func() {
		for tick := time.Tick(time.Millisecond); t.Context().Err() == nil; <-tick {
			select {
			case wake <- struct{}{}:
			case <-t.Context().Done():
			}
		}
	}()
	return wake
}

func write(t *testing.T, dir string, attempt int, lines ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), entries(lines), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, dir string, attempt int, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.log", attempt)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(entries(lines)); err != nil {
		t.Fatal(err)
	}
}

func entries(lines []string) []byte {
	var b []byte
	for _, l := range lines {
		b = fmt.Appendf(b, "%s %s\n", stamp, l)
	}
	return b
}

func until(t *testing.T, flushed <-chan int, n int) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case got := <-flushed:
			if got >= n {
				return
			}
		case <-limit:
			t.Fatalf("%d lines never came", n)
		}
	}
}

func wait(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the follower did not end")
	}
}
