package script

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// terminal COLSxROWS SCENE podrun ARG...: runs podrun at a terminal that is its controlling
// one, while a user does the steps in the file SCENE, line by line:
//
//	expect TEXT    waits for TEXT in the output, after the previously expected text
//	insist TEXT WORDS  types TEXT each second until the output has WORDS
//	type TEXT      types TEXT, in which Go's escapes stand for other keys: \r, \x03
//	size COLSxROWS resizes the terminal
//	kill SIGNAL    sends podrun a signal
//	code N         waits until podrun exits with this code
//	eventually TEXT podrun ARG...  runs another podrun until it prints TEXT
//	killsupervisor POD             as outside of a scene
//	exec PROGRAM ARG...            runs a program in the script's directory
//	unlock                         releases what the command lock has locked
//
// Then podrun must have ended, and left the terminal as it was.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[2] != "podrun" {
		ts.Fatalf("usage: terminal COLSxROWS SCENE podrun ARG...")
	}
	master, slave, err := pty.Open()
	ts.Check(err)
	defer master.Close()
	defer slave.Close()
	s := &session{ts: ts, master: master}
	s.size(args[0])
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	ts.Check(err)
	s.cmd = hostOf(ts).podrun(args[3:]...)
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(s.cmd.Start())
	go s.watch()
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.cmd.Wait() }()
	defer s.cmd.Process.Kill()
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			s.do(line)
		}
	}
	if s.ended != nil {
		s.code("0")
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	ts.Check(err)
	if *before != *after {
		ts.Fatalf("the terminal was left in another mode")
	}
	ts.Logf("the terminal shows:\n%q", s.shown())
}

// lock FILE locks a file of podrun exclusively, until a scene has the step unlock.
func lock(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "lock FILE")
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR|os.O_CREATE, 0o600)
	ts.Check(err)
	ts.Defer(func() { f.Close() })
	ts.Check(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
	hostOf(ts).locked = f
}

type session struct {
	ts     *testscript.TestScript
	master *os.File
	cmd    *exec.Cmd
	ended  chan error // nil after its end

	mu   sync.Mutex
	text []byte
	seen int // offset in text
}

// watch collects the terminal's output.
func (s *session) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.text = append(s.text, buf[:n]...)
		s.mu.Unlock()
		if err != nil { // EIO: no process has the other side open any more
			return
		}
	}
}

// shown returns the last part of the output.
func (s *session) shown() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.text[max(0, len(s.text)-2000):])
}

func (s *session) do(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "expect":
		s.expect(s.unquote(rest))
	case "insist": // output is lost while no client is attached
		keys, want, _ := strings.Cut(rest, " ")
		s.mustShow(s.unquote(keys), s.unquote(want))
	case "type":
		_, err := s.master.WriteString(s.unquote(rest))
		s.ts.Check(err)
	case "size":
		s.size(rest)
	case "kill":
		s.ts.Check(s.cmd.Process.Signal(unix.SignalNum("SIG" + rest)))
	case "code":
		s.code(rest)
	case "eventually": // TEXT podrun ARG...
		text, command, _ := strings.Cut(rest, " podrun ")
		if !scriptcmd.Poll(func() bool {
			out, _ := hostOf(s.ts).podrun(strings.Fields(command)...).Output()
			return bytes.Contains(out, []byte(text))
		}) {
			s.ts.Fatalf("%s: it does not", line)
		}
	case "killsupervisor":
		killSupervisor(s.ts, false, []string{rest})
	case "exec":
		if out, err := repeated(s.ts, strings.Fields(rest)).CombinedOutput(); err != nil {
			s.ts.Fatalf("%s: %v\n%s", line, err, out)
		}
	case "unlock":
		s.ts.Check(hostOf(s.ts).locked.Close())
	default:
		s.ts.Fatalf("%q is nothing a user does", line)
	}
}

func (s *session) unquote(text string) string {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	s.ts.Check(err)
	return out
}

func (s *session) expect(want string) {
	if !scriptcmd.Poll(func() bool { return s.shows(want) }) {
		s.ts.Fatalf("the terminal does not show %q, but:\n%q", want, s.shown())
	}
}

func (s *session) mustShow(keys, want string) {
	var typed time.Time
	if !scriptcmd.Poll(func() bool {
		if time.Since(typed) > time.Second {
			_, err := s.master.WriteString(keys)
			s.ts.Check(err)
			typed = time.Now()
		}
		return s.shows(want)
	}) {
		s.ts.Fatalf("the terminal does not show %q, but:\n%q", want, s.shown())
	}
}

// shows reports whether the output has the words after the previously expected text.
func (s *session) shows(want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bytes.Index(s.text[s.seen:], []byte(want))
	if i >= 0 {
		s.seen += i + len(want)
	}
	return i >= 0
}

func (s *session) size(text string) {
	var size pty.Winsize
	if n, _ := fmt.Sscanf(text, "%dx%d", &size.Cols, &size.Rows); n != 2 {
		s.ts.Fatalf("%q is no size: COLSxROWS", text)
	}
	s.ts.Check(pty.Setsize(s.master, &size))
}

func (s *session) code(text string) {
	if s.ended == nil {
		s.ts.Fatalf("it has ended already")
	}
	select {
	case <-s.ended:
	case <-time.After(scriptcmd.Timeout):
		s.ts.Fatalf("podrun does not end; the terminal shows:\n%q", s.shown())
	}
	s.ended = nil
	got := s.cmd.ProcessState.ExitCode()
	if st := s.cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		got = 128 + int(st.Signal())
	}
	if strconv.Itoa(got) != text {
		s.ts.Fatalf("exit code %d instead of %s; the terminal shows:\n%q", got, text, s.shown())
	}
}
