package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/wire"
)

// execWorld has a running pod of one container whose execs do what do says.
func execWorld(t *testing.T, do func(*execClient)) *world {
	t.Helper()
	w := newWorld(t)
	s := w.upDetached(oneContainer, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exec = do
	return w
}

func TestExec(t *testing.T) {
	w := execWorld(t, func(c *execClient) {
		c.started()
		in, _ := io.ReadAll(c.files[0])
		fmt.Fprintf(c.files[1], "%s %q in %q", c.req.Container, c.req.Args, in)
		fmt.Fprint(c.files[2], "complaint")
		c.close()
		c.exit(len(c.req.Args) - 1)
	})
	check(t, w.begin("not passed on", "exec", "web", "--", "true").wait(), 0, `app ["true"] in ""`, "complaint")
	check(t, w.begin("text", "exec", "web", "-i", "-c", "app", "--", "sh", "-c", "x -c y", "--", "-i").wait(), 4,
		`app ["sh" "-c" "x -c y" "--" "-i"] in "text"`, "complaint")
}

func TestExecFailures(t *testing.T) {
	w := execWorld(t, func(c *execClient) {
		code := map[string]int{"nosuch": 127, "noexec": 126, "broken": 125}[c.req.Args[0]]
		c.fail("run "+c.req.Args[0]+": it cannot be", code)
	})
	for name, tc := range map[string]struct {
		args string
		code int
		err  string
	}{
		"not found":      {"exec web -- nosuch", 127, "podrun: run nosuch: it cannot be\n"},
		"not executable": {"exec web -- noexec", 126, "podrun: run noexec: it cannot be\n"},
		"podrun's own":   {"exec web -- broken", 125, "podrun: run broken: it cannot be\n"},
		"no such pod":    {"exec nosuch -- ls", 125, "podrun: pod \"nosuch\" not found\nhint: podrun ps lists the pods\n"},
		"no container":   {"exec web -c nosuch -- ls", 125, "podrun: container \"nosuch\" not found in pod \"web\"\nhint: its containers are app\n"},
		"no command":     {"exec web --", 2, "podrun: you must specify at least one command for the container\nhint: podrun exec --help\n"},
		"nothing":        {"exec", 2, "podrun: exec takes the name of one pod, then -- and a command\nhint: podrun exec --help\n"},
		"without --":     {"exec web ls", 2, "podrun: exec takes -- between the pod and the command: podrun exec POD -- COMMAND\nhint: podrun exec --help\n"},
		"two pods":       {"exec web web2 -- ls", 2, "podrun: exec takes the name of one pod, then -- and a command\nhint: podrun exec --help\n"},
	} {
		t.Run(name, func(t *testing.T) { check(t, w.run(strings.Fields(tc.args)...), tc.code, "", tc.err) })
	}
	w.supervisor("default", "web").kill()
	check(t, w.run("exec", "web", "--", "ls"), 125, "", "podrun: cannot exec in pod \"web\": it is not running\nhint: podrun ps shows its state\n")
}

// What the command wrote is shown to the last byte, and a child of it that keeps
// the pipe open keeps nobody waiting.
func TestExecShowsAllAndWaitsForNobody(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	text := strings.Repeat("0123456789abcdef", 4000) // nearly fills the pipe
	w := execWorld(t, func(c *execClient) {
		c.started()
		io.WriteString(c.files[1], text)
		c.exit(0)
		<-release
	})
	got := w.run("exec", "web", "--", "daemon")
	if got.code != 0 || got.out != text || got.err != "" {
		t.Errorf("code %d, %d bytes of %d, %q", got.code, len(got.out), len(text), got.err)
	}
}

func TestExecPassesSignalsOn(t *testing.T) {
	left := make(chan error, 1)
	w := execWorld(t, func(c *execClient) {
		c.started()
		fmt.Fprintln(c.files[1], "ready")
		msg, err := wire.ReadControl(c.conn)
		fmt.Fprintf(c.files[1], "got signal %d, error %v\n", msg.Signal, err)
		if c.req.Args[0] == "stubborn" {
			left <- c.gone()
			return
		}
		c.exit(128 + msg.Signal)
	})
	p := w.begin("", "exec", "web", "--", "polite")
	p.says("ready")
	p.signals <- syscall.SIGTERM
	check(t, p.wait(), 143, "ready\ngot signal 15, error <nil>\n", "")

	p = w.begin("", "exec", "web", "--", "stubborn")
	p.says("ready")
	p.signals <- syscall.SIGINT
	p.says("got signal 2")
	p.signals <- syscall.SIGINT
	if got := p.wait(); got.code != 130 {
		t.Errorf("%+v", got)
	}
	if err := <-left; err != nil {
		t.Errorf("the supervisor was not left: %v", err)
	}
}

func TestExecSupervisorDies(t *testing.T) {
	w := execWorld(t, func(c *execClient) {
		c.started()
		c.conn.Close()
	})
	got := w.run("exec", "web", "--", "ls")
	if got.code != 125 || !strings.Contains(got.err, "lost the supervisor of pod web before the command ended") {
		t.Errorf("%+v", got)
	}
}

func TestExecWithoutATerminalGoesOn(t *testing.T) {
	w := execWorld(t, func(c *execClient) {
		c.started()
		fmt.Fprintf(c.files[1], "tty %v", c.req.TTY)
		c.exit(0)
	})
	check(t, w.run("exec", "-it", "web", "--", "sh"), 0, "tty false",
		"Unable to use a TTY - input is not a terminal or the right kind of file\n")
}

// A terminal: the user's is put into raw mode and back, sizes and bytes go both ways.
func TestExecTerminal(t *testing.T) {
	user, terminal := openTerminal(t) // the test is the user, podrun has the terminal
	if err := pty.Setsize(user, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	before := mode(t, terminal)
	resized := make(chan struct{})
	w := execWorld(t, func(c *execClient) {
		master, slave, err := pty.Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer slave.Close()
		if _, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil {
			t.Error(err)
		}
		c.started(master)
		master.Close()
		fmt.Fprintf(slave, "%d x %d, %s> ", c.req.Rows, c.req.Cols, c.req.Term)
		line := make([]byte, 100)
		n, _ := slave.Read(line)
		fmt.Fprintf(slave, "read %q", line[:n])
		<-resized
		eventually(t, "the new size arrives", func() bool {
			rows, cols, err := pty.Getsize(slave)
			return err == nil && rows == 40 && cols == 100
		})
		fmt.Fprint(slave, " bye")
		c.exit(5)
	})
	var out buffer
	p := w.beginWith(terminal, &out, "exec", "-it", "web", "--", "sh")
	waitFor(t, &out, "33 x 77, xterm> ")
	if mode(t, terminal).Lflag&unix.ICANON != 0 {
		t.Error("the user's terminal is not in raw mode")
	}
	io.WriteString(user, "hello\r")
	waitFor(t, &out, `read "hello\n"`)
	if err := pty.Setsize(user, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(os.Getpid(), syscall.SIGWINCH) // the test has no controlling terminal to send it
	close(resized)
	if got := p.wait(); got.code != 5 || got.err != "" {
		t.Errorf("%+v", got)
	}
	waitFor(t, &out, " bye")
	if after := mode(t, terminal); after != before {
		t.Errorf("the user's terminal was not put back:\n%+v\n%+v", before, after)
	}
}

func waitFor(t *testing.T, out *buffer, text string) {
	t.Helper()
	eventually(t, "the terminal shows "+text, func() bool { return strings.Contains(out.String(), text) })
}

func openTerminal(t *testing.T) (user, terminal *os.File) {
	t.Helper()
	user, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close(); terminal.Close() })
	return user, terminal
}

func mode(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}
