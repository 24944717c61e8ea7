package exec_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/wire"
)

// execWorld has a running pod of one container; do answers every exec.
func execWorld(t *testing.T, do func(*clitest.ExecClient)) *clitest.Host {
	t.Helper()
	h := clitest.NewHost(t)
	s := h.UpDetached(clitest.OneContainer, nil)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Exec = do
	return h
}

func TestExec(t *testing.T) {
	h := execWorld(t, func(c *clitest.ExecClient) {
		c.Started()
		in, _ := io.ReadAll(c.Files[0])
		fmt.Fprintf(c.Files[1], "%s %q in %q", c.Req.Container, c.Req.Args, in)
		fmt.Fprint(c.Files[2], "complaint")
		c.Close()
		c.Exit(len(c.Req.Args) - 1)
	})
	clitest.CheckResult(t, h.Begin("not passed on", "exec", "web", "--", "true").Wait(), 0, `app ["true"] in ""`, "complaint")
	clitest.CheckResult(t, h.Begin("text", "exec", "web", "-i", "-c", "app", "--", "sh", "-c", "x -c y", "--", "-i").Wait(), 4,
		`app ["sh" "-c" "x -c y" "--" "-i"] in "text"`, "complaint")
}

func TestExecFailures(t *testing.T) {
	h := execWorld(t, func(c *clitest.ExecClient) {
		code := map[string]int{"nosuch": 127, "noexec": 126, "broken": 125}[c.Req.Args[0]]
		c.Fail("run "+c.Req.Args[0]+": it cannot be", code)
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
		"nothing":        {"exec", 2, "podrun: exec requires the name of one pod, then -- and a command\nhint: podrun exec --help\n"},
		"without --":     {"exec web nosuch -x", 127, "podrun exec [POD] [COMMAND] is DEPRECATED. Use podrun exec [POD] -- [COMMAND] instead.\npodrun: run nosuch: it cannot be\n"},
		"two pods":       {"exec web web2 -- ls", 2, "podrun: exec requires the name of one pod, then -- and a command\nhint: podrun exec --help\n"},
	} {
		t.Run(name, func(t *testing.T) { clitest.CheckResult(t, h.Run(strings.Fields(tc.args)...), tc.code, "", tc.err) })
	}
	h.Supervisor("default", "web").Kill()
	clitest.CheckResult(t, h.Run("exec", "web", "--", "ls"), 125, "", "podrun: cannot exec in pod \"web\": it is not running\nhint: podrun ps shows its state\n")
}

// TestExecOutput checks that exec prints all output of the command, and does not wait for a child that keeps
// the pipe open.
func TestExecOutput(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	text := strings.Repeat("0123456789abcdef", 4000) // nearly fills the pipe
	h := execWorld(t, func(c *clitest.ExecClient) {
		c.Started()
		io.WriteString(c.Files[1], text)
		c.Exit(0)
		<-release
	})
	got := h.Run("exec", "web", "--", "daemon")
	if got.Code != 0 || got.Out != text || got.Err != "" {
		t.Errorf("code %d, %d bytes of %d, %q", got.Code, len(got.Out), len(text), got.Err)
	}
}

func TestExecPassesSignalsOn(t *testing.T) {
	left := make(chan error, 1)
	h := execWorld(t, func(c *clitest.ExecClient) {
		c.Started()
		fmt.Fprintln(c.Files[1], "ready")
		msg, err := wire.ReadControl(c.Conn)
		fmt.Fprintf(c.Files[1], "got signal %d, error %v\n", msg.Signal, err)
		if c.Req.Args[0] == "stubborn" {
			left <- c.WaitDisconnected()
			return
		}
		c.Exit(128 + msg.Signal)
	})
	p := h.Begin("", "exec", "web", "--", "polite")
	p.WaitOutput("ready")
	p.Signals <- syscall.SIGTERM
	clitest.CheckResult(t, p.Wait(), 143, "ready\ngot signal 15, error <nil>\n", "")

	p = h.Begin("", "exec", "web", "--", "stubborn")
	p.WaitOutput("ready")
	p.Signals <- syscall.SIGINT
	p.WaitOutput("got signal 2")
	p.Signals <- syscall.SIGINT
	if got := p.Wait(); got.Code != 130 {
		t.Errorf("%+v", got)
	}
	if err := <-left; err != nil {
		t.Errorf("the supervisor was not left: %v", err)
	}
}

func TestExecSupervisorDies(t *testing.T) {
	h := execWorld(t, func(c *clitest.ExecClient) {
		c.Started()
		c.Conn.Close()
	})
	got := h.Run("exec", "web", "--", "ls")
	if got.Code != 125 || !strings.Contains(got.Err, "lost the supervisor of pod web before the command ended") {
		t.Errorf("%+v", got)
	}
}

func TestExecWithoutATerminalGoesOn(t *testing.T) {
	h := execWorld(t, func(c *clitest.ExecClient) {
		c.Started()
		fmt.Fprintf(c.Files[1], "tty %v", c.Req.TTY)
		c.Exit(0)
	})
	clitest.CheckResult(t, h.Run("exec", "-it", "web", "--", "sh"), 0, "tty false",
		"Unable to use a TTY - input is not a terminal or the right kind of file\n")
}

// TestExecTerminal checks that the user's terminal is put into raw mode and restored, and that sizes and
// bytes are forwarded.
func TestExecTerminal(t *testing.T) {
	user, terminal := clitest.OpenTerminal(t) // the test is the user, podrun has the terminal
	if err := pty.Setsize(user, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	before := mode(t, terminal)
	resized := make(chan struct{})
	h := execWorld(t, func(c *clitest.ExecClient) {
		master, slave, err := pty.Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer slave.Close()
		if _, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil {
			t.Error(err)
		}
		c.Started(master)
		master.Close()
		fmt.Fprintf(slave, "%d x %d, %s> ", c.Req.Rows, c.Req.Cols, c.Req.Term)
		line := make([]byte, 100)
		n, _ := slave.Read(line)
		fmt.Fprintf(slave, "read %q", line[:n])
		<-resized
		clitest.Eventually(t, "the new size arrives", func() bool {
			rows, cols, err := pty.Getsize(slave)
			return err == nil && rows == 40 && cols == 100
		})
		fmt.Fprint(slave, " bye")
		c.Exit(5)
	})
	var out clitest.Buffer
	p := h.BeginWith(terminal, &out, "exec", "-it", "web", "--", "sh")
	clitest.WaitFor(t, &out, "33 x 77, xterm> ")
	if mode(t, terminal).Lflag&unix.ICANON != 0 {
		t.Error("the user's terminal is not in raw mode")
	}
	io.WriteString(user, "hello\r")
	clitest.WaitFor(t, &out, `read "hello\n"`)
	if err := pty.Setsize(user, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(os.Getpid(), syscall.SIGWINCH) // the test has no controlling terminal to send it
	close(resized)
	if got := p.Wait(); got.Code != 5 || got.Err != "" {
		t.Errorf("%+v", got)
	}
	clitest.WaitFor(t, &out, " bye")
	if after := mode(t, terminal); after != before {
		t.Errorf("the user's terminal was not put back:\n%+v\n%+v", before, after)
	}
}

func mode(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}
