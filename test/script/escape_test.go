package script

import (
	"bytes"
	"regexp"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// controlPattern matches text that a terminal interprets, except colors, which podrun prints
// itself: escape sequences, control characters of both sets, and characters that change the writing
// direction.
var controlPattern = regexp.MustCompile("\x1b(?:\\[[0-9;:]*[^0-9;:m]|[^\\[])|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|[\u0080-\u009f\u202a-\u202e\u2066-\u2069\u200e\u200f]")

// escaped TEXT podrun ARG...: podrun at a terminal prints TEXT and no control sequences; its exit
// code is ignored.
func escaped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || args[1] != "podrun" {
		ts.Fatalf("usage: escaped TEXT podrun ARG...")
	}
	master, slave, err := pty.Open()
	ts.Check(err)
	defer master.Close()
	cmd := hostOf(ts).podrun(args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	slave.Close()
	s := &session{ts: ts, master: master}
	shown := make(chan struct{})
	go func() { defer close(shown); s.watch() }()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		ts.Check(err)
	}
	<-shown // every process with the terminal has exited
	text := s.text
	if !bytes.Contains(text, []byte(args[0])) {
		ts.Fatalf("the output has no %q:\n%q", args[0], text)
	}
	if found := controlPattern.FindAll(text, -1); len(found) > 0 {
		ts.Fatalf("a terminal would interpret %q in:\n%q", found, text)
	}
}
