package runner

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
)

// attached is a client that is attached to a container.
type attached struct {
	t     *testing.T
	conn  *net.UnixConn
	input *os.File // nil if none was requested and there is no terminal
	out   *bufio.Reader
	pipe  *os.File
}

// joinAt attaches to a container through the connection, or returns the error.
func joinAt(t *testing.T, conn *net.UnixConn, container string, stdin bool) (*attached, *wire.Error) {
	t.Helper()
	return attachTo(t, conn, wire.AttachRequest{Container: container, Stdin: stdin})
}

func attachTo(t *testing.T, conn *net.UnixConn, req wire.AttachRequest) (*attached, *wire.Error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	err = wire.WriteRequest(conn, wire.Request{Verb: wire.Attach, Attach: &req}, w, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	f, files, err := wire.ReadFrame(conn)
	if err != nil {
		t.Fatal(err)
	}
	a := &attached{t: t, conn: conn, pipe: r, out: bufio.NewReader(r)}
	t.Cleanup(a.leave)
	if f.Error != nil {
		return nil, f.Error
	}
	if len(files) == 1 {
		a.input = files[0]
	}
	return a, nil
}

func (a *attached) leave() {
	a.conn.Close()
	a.pipe.Close()
	if a.input != nil {
		a.input.Close()
	}
}

// hold enlarges the pipe for output that is not read at once.
func (a *attached) hold(bytes int) {
	a.t.Helper()
	raw, err := a.pipe.SyscallConn()
	if err != nil {
		a.t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes) })
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *attached) say(text string) {
	a.t.Helper()
	if _, err := a.input.WriteString(text); err != nil {
		a.t.Error(err)
	}
}

// hear waits for a line.
func (a *attached) hear(want string) {
	a.t.Helper()
	a.pipe.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		line, err := a.out.ReadString('\n')
		if strings.Contains(line, want) {
			return
		}
		if err != nil {
			a.t.Fatalf("%q was not heard: %q %v", want, line, err)
		}
	}
}

// ends waits for the container's exit with this code.
func (a *attached) ends(code int) {
	a.t.Helper()
	if _, err := io.ReadAll(a.out); err != nil {
		a.t.Error(err)
	}
	if f, _, err := wire.ReadFrame(a.conn); err != nil || f.Exit == nil || *f.Exit != code {
		a.t.Errorf("%+v, %v; want exit code %d", f, err, code)
	}
}

func (p *testPod) join(container string, stdin bool) (*attached, *wire.Error) {
	p.t.Helper()
	conn, err := p.place.Dial()
	if err != nil {
		p.t.Fatal(err)
	}
	return joinAt(p.t, conn, container, stdin)
}

// Several clients are attached to one container. Each receives its output, and each can write to its input,
// which stays open when they disconnect.
func TestAttach(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `while read x; do echo "got $x"; case $x in [0-9]*) exit $x;; esac; done; echo eof`)
	c.Stdin = true
	p := start(t, newPlan(nil, []pod.Container{c, shell(c.Layers[0], "b", "exec sleep 1000")}))
	p.running()
	first, _ := p.join("a", true)
	second, _ := p.join("a", true)
	deaf, _ := p.join("a", false)
	if deaf.input != nil {
		t.Error("who asks for no input has one")
	}
	first.say("one\n")
	first.hear("got one")
	second.hear("got one")
	first.leave()
	second.say("two\n")
	second.hear("got two")
	second.say("7\n")
	second.ends(7)
	if log := p.log("a"); log != "got one\ngot two\ngot 7\n" {
		t.Errorf("log %q", log)
	}
	for container, want := range map[string]string{"b": "container b accepts no input: stdin is false", "a": "container a is not running", "c": "container c is not running"} {
		if _, err := p.join(container, true); err == nil || err.Message != want {
			t.Errorf("join %s: %+v, want %q", container, err, want)
		}
	}
}

// A client that does not read blocks nothing, and gets a message about what it has missed.
func TestSlowReaderHoldsUpNothing(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `read x; i=0; while [ $i -lt 3000 ]; do echo "$i 3456789 123456789 123456789 123456789 123456789 123456789"; i=$((i+1)); done; echo written; read x; echo more; read x`)
	c.Stdin = true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	slow, _ := p.join("a", false)
	quick, _ := p.join("a", true)
	quick.hold(1 << 20) // all output, no matter when the test reads it
	quick.say("\n")
	quick.hear("written")
	io.CopyN(io.Discard, slow.out, 32<<10)
	quick.say("\n")
	quick.hear("more")
	slow.hear("bytes are missing here; podrun logs p shows them")
	slow.hear("more")
	quick.say("\n")
	quick.ends(0)
}

// A client that has missed the end of the output gets the message when the container exits.
func TestSlowReaderGetsAMessageAtTheEnd(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `read x; echo first; head -c 200000 /dev/zero; read x`)
	c.Stdin = true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	slow, _ := p.join("a", true)
	slow.say("\n")
	p.eventually("written", func([]pod.Event) bool { return len(p.log("a")) >= 200_000 })
	slow.hear("first")
	if n, err := io.CopyN(io.Discard, slow.out, 16<<10); err != nil {
		t.Fatal(n, err)
	}
	slow.say("\n")
	slow.hear("bytes are missing here; podrun logs p shows them")
	slow.ends(0)
}

// stdinOnce: when the first client with the input disconnects, the input is closed.
func TestStdinOnce(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `while read x; do echo "got $x"; done; echo eof; exec sleep 1000`)
	c.Stdin, c.StdinOnce = true, true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	deaf, _ := p.join("a", false)
	deaf.leave()
	watcher, _ := p.join("a", false)
	first, _ := p.join("a", true)
	first.say("one\n")
	watcher.hear("got one")
	first.leave()
	watcher.hear("eof")
	if _, err := p.join("a", true); err == nil || !strings.Contains(err.Message, "accepts no more input") {
		t.Errorf("a second input: %+v", err)
	}
}

// A container has a new terminal of its own; its log is one stream of whole lines.
func TestTerminalOfAContainer(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `tty; test -t 0 && test -t 1 && test -t 2 && echo "all three" >&2; echo "console $(cat /proc/$$/stat | cut -d' ' -f7)"; stty -echo; printf 'prompt> '; read x; stty size; echo "got $x"; exit 3`)
	c.TTY, c.Stdin = true, true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	a, _ := p.join("a", true)
	raw, err := a.input.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 11, Col: 77})
	})
	if err != nil {
		t.Fatal(err)
	}
	a.say("hello\n")
	a.hear("got hello")
	a.ends(3)
	log := p.log("a")
	for _, want := range []string{"/dev/pts/0\r\n", "all three\r\n", "11 77\r\n", "got hello\r\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log %q", want, log)
		}
	}
	if strings.Contains(log, "console 0") {
		t.Errorf("it has no controlling terminal: %q", log)
	}
	for _, r := range parse(t, p.place.LogFile("a", 0)) {
		if r[0] != "stdout" {
			t.Errorf("a line of %s", r[0])
		}
	}
}

// When a supervisor dies or hibernates, a container's input and terminal stay open, and nothing written to
// either is lost.
func TestInputOutlivesSupervisors(t *testing.T) {
	for name, tty := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			t.Setenv("PODRUN_HIBERNATE_AFTER", "20ms")
			c := shell(layer(t), "a", `stty -echo 2> /dev/null; i=0; while read x; do echo "$i got $x"; i=$((i+1)); done; echo eof`)
			c.TTY, c.Stdin = tty, true
			w := startWhole(t, newPlan(nil, []pod.Container{c}))
			w.until(running)
			supervisor, podInit := w.processes()
			for i := range 3 {
				a, err := joinAt(t, w.dial(), "a", true)
				if err != nil {
					t.Fatal(err.Message)
				}
				supervisor = supervisorOf(podInit)
				if i == 1 {
					if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
					a.say("x\n") // it arrives all the same
					a.leave()
					for supervisorOf(podInit) == supervisor {
					}
					continue
				}
				a.say("x\n")
				a.hear("got x")
				a.leave()
				w.asleep(podInit)
			}
			for deadline := time.Now().Add(time.Minute); ; {
				b, _ := os.ReadFile(w.place.LogFile("a", 0))
				text := string(b)
				if strings.Contains(text, "eof") || time.Now().After(deadline) {
					t.Fatalf("log %q", text)
				}
				if strings.Count(text, "got x") == 3 && strings.Contains(text, "2 got x") {
					return
				}
			}
		})
	}
}

// joinFromStart attaches to a container and requests its earlier output, too.
func (p *testPod) joinFromStart(container string, stdin bool) (*attached, *wire.Error) {
	p.t.Helper()
	conn, err := p.place.Dial()
	if err != nil {
		p.t.Fatal(err)
	}
	return attachTo(p.t, conn, wire.AttachRequest{Container: container, Stdin: stdin, FromStart: true})
}

// hears waits for a text that must come next, byte by byte.
func (a *attached) hears(want string) {
	a.t.Helper()
	a.pipe.SetReadDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(a.out, got); err != nil || string(got) != want {
		same := 0
		for same < n && got[same] == want[same] {
			same++
		}
		a.t.Fatalf("after %d bytes as they should be: %.60q, %v; want %.60q", same, got[same:n], err, want[same:])
	}
}

// A client that attaches while a program writes receives each byte once, from the first one on: of whole
// lines, of an unfinished line, and of a terminal.
func TestAttachFromStart(t *testing.T) {
	for name, tty := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			c := shell(layer(t), "a", `stty -echo 2> /dev/null; i=0; while [ $i -lt 1500 ]; do printf "line $i"; printf " is whole\n"; i=$((i+1)); done; printf half; read x; echo " a $x"; read x; exit 3`)
			c.TTY, c.Stdin = tty, true
			p := start(t, newPlan(nil, []pod.Container{c}))
			p.running()
			var all []*attached
			come := func() {
				a, err := p.joinFromStart("a", true)
				if err != nil {
					t.Fatal(err.Message)
				}
				all = append(all, a)
			}
			for range 30 {
				come()
			}
			eol := "\n"
			if tty {
				eol = "\r\n"
			}
			var text strings.Builder
			for i := range 1500 {
				fmt.Fprintf(&text, "line %d is whole%s", i, eol)
			}
			text.WriteString("half")
			all[0].hears(text.String())
			come()
			all[0].say("line\n")
			rest := " a line" + eol
			all[0].hears(rest)
			come() // everything is in the log by now, or about to be
			for i, a := range all {
				if i > 0 {
					a.hears(text.String() + rest)
				}
			}
			all[0].say("\n")
			for _, a := range all {
				if more, err := io.ReadAll(a.out); err != nil || len(more) > 0 {
					t.Errorf("heard once more: %.60q, %v", more, err)
				}
				a.ends(3)
			}
			if _, err := p.joinFromStart("a", false); err == nil || err.Message != "container a is not running" {
				t.Errorf("join after the end: %+v", err)
			}
		})
	}
}

// A client that attaches when more was written than its pipe holds gets a message about how much is
// missing.
func TestAttachFromStartWithoutSpace(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", `head -c 200000 /dev/zero; read x`)
	c.Stdin = true
	p := start(t, newPlan(nil, []pod.Container{c}))
	p.running()
	p.eventually("written", func([]pod.Event) bool { return len(p.log("a")) >= 200_000 })
	late, err := p.joinFromStart("a", true)
	if err != nil {
		t.Fatal(err.Message)
	}
	late.hears(strings.Repeat("\x00", 60_000))
	late.say("\n")
	late.hear("bytes are missing here; podrun logs p shows them")
	late.ends(0)
}
