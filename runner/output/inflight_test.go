package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/crilog"
)

// text is a crilog.Sink that reassembles each stream.
type text map[string]*bytes.Buffer

func (x text) Entry(e crilog.Entry) error {
	b := x[e.Stream]
	if b == nil {
		b = &bytes.Buffer{}
		x[e.Stream] = b
	}
	b.Write(e.Text)
	if !e.Partial {
		b.WriteByte('\n')
	}
	return nil
}

func (text) Flush() error { return nil }

// read returns a log's content of one stream.
func read(t interface{ Fatal(...any) }, dir, stream string) string {
	x := text{}
	if err := crilog.Read(dir, 0, crilog.All, x); err != nil {
		t.Fatal(err)
	}
	if x[stream] == nil {
		return ""
	}
	return x[stream].String()
}

// Everything written is in the log exactly once, across rotations, however often and wherever the
// supervisor is killed: before it writes, in the middle of an entry, between the file and the pipe.
func TestLogSurvivesKills(t *testing.T) {
	root := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, fmt.Sprint(runs))
		config := LogConfig{
			Dir: dir, inFlight: filepath.Join(root, "flight"),
			Limits: crilog.Limits{MaxBytes: int64(rapid.IntRange(1, 3000).Draw(t, "max")), MaxFiles: 1000},
		}
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		w := os.NewFile(uintptr(ends[1]), "w")
		defer w.Close()
		var wrote bytes.Buffer
		var b []byte
		write := func() {
			if len(b) == 0 || !rapid.Bool().Draw(t, "the same again") {
				b = chunk.Draw(t, "text")
			}
			wrote.Write(b)
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "kills") {
			write()
			l, err := OpenLog(config, func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			s := &Stream{Name: "stdout", Pipe: dup(t, ends[0])}
			if err := l.recoverInFlight([]*Stream{s}); err != nil {
				t.Fatal(err)
			}
			killed(t, l, ends[0])
			s.Pipe.Close()
			abandon(l)
		}
		write()
		l, err := OpenLog(config, func([]byte) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Recover(&Stream{Name: "stdout", Pipe: dup(t, ends[0])}); err != nil {
			t.Fatal(err)
		}
		unix.Close(ends[0])
		w.Close()
		l.Drain()
		if got := read(t, dir, "stdout"); got != wrote.String() {
			t.Fatalf("read %q\nwant %q", got, wrote.String())
		}
	})
}

// A container that writes the same text again and again loses none of it when the supervisor is killed
// after it has emptied the pipe and before it clears the in-flight record.
func TestLogOfTheSameTextAgain(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken ", taken), func(t *testing.T) {
			dir := t.TempDir()
			config := LogConfig{Dir: dir, inFlight: filepath.Join(dir, "flight"), Limits: crilog.Limits{MaxBytes: 1 << 20, MaxFiles: 2}}
			var ends [2]int
			if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
				t.Fatal(err)
			}
			r, w := os.NewFile(uintptr(ends[0]), "r"), os.NewFile(uintptr(ends[1]), "w")
			defer w.Close()
			l, err := OpenLog(config, func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(w, "tick\n")
			b, err := l.peek(uintptr(ends[0]))
			if err != nil {
				t.Fatal(err)
			}
			l.inFlight.begin(l.file, "stdout", 1, b)
			l.write(formatEntries(nil, "stdout", 1, b))
			if taken {
				if err := l.discard(uintptr(ends[0]), len(b)); err != nil {
					t.Fatal(err)
				}
			}
			abandon(l)
			fmt.Fprint(w, "tick\n")
			if l, err = OpenLog(config, func([]byte) {}); err != nil {
				t.Fatal(err)
			}
			if err := l.Recover(&Stream{Name: "stdout", Pipe: r}); err != nil {
				t.Fatal(err)
			}
			w.Close()
			l.Drain()
			if got := read(t, dir, "stdout"); got != "tick\ntick\n" {
				t.Errorf("the log has %q", got)
			}
		})
	}
}

var chunk = rapid.Custom(func(t *rapid.T) []byte {
	var b []byte
	for range rapid.IntRange(0, 8).Draw(t, "lines") {
		b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "line")...)
		b = append(b, '\n')
	}
	return append(b, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "rest")...)
})

// killed does what a supervisor does until it is killed at some point of a step.
func killed(t *rapid.T, l *Log, fd int) {
	b, err := l.peek(uintptr(fd))
	n := completeLines(b)
	if err != nil || n == 0 {
		return
	}
	l.lastTime++
	l.inFlight.begin(l.file, "stdout", l.lastTime, b[:n])
	out := formatEntries(nil, "stdout", l.lastTime, b[:n])
	cut := rapid.IntRange(0, len(out)).Draw(t, "cut")
	if _, err := l.file.Write(out[:cut]); err != nil {
		t.Fatal(err)
	}
	if cut < len(out) || rapid.Bool().Draw(t, "before it is taken from the pipe") {
		return
	}
	if err := l.discard(uintptr(fd), n); err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "noted") {
		l.inFlight.end()
	}
}

// abandon frees what the kernel frees of a killed process.
func abandon(l *Log) {
	l.file.Close()
	l.inFlight.close()
	unix.Close(l.peekPipe[0])
	unix.Close(l.peekPipe[1])
}

func dup(t *rapid.T, fd int) *os.File {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(n), "r")
}

// A container may read its own output before the supervisor does, and exit: then the supervisor must not
// wait for it.
func TestOutputThatTheContainerHasRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("tex"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	l := &Log{inFlight: &inFlight{page: make([]byte, inFlightSize)}, buf: new(peekBuffer)}
	if err := l.discard(r.Fd(), len("text")); err != nil {
		t.Error(err)
	}
	if l.inFlight.page[inFlightTaken] != 't' {
		t.Error("what was taken is not marked")
	}
}
