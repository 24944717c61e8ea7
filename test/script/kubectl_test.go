package script

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// TestKubectlTable executes the command lines of docs/reference/kubectl.md, all on one host, in their order.
func TestKubectlTable(t *testing.T) {
	t.Parallel()
	bin, rootfs := prepare(t)
	archive, err := txtar.ParseFile("../../" + scriptcmd.KubectlTable)
	if err != nil {
		t.Fatal(err)
	}
	sections, err := scriptcmd.ParseTable(string(archive.Comment))
	if err != nil {
		t.Fatal(err)
	}
	h, err := newEmptyHost(t.TempDir(), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	h.env = append(h.env, rootfsTar+"="+rootfs)
	for _, f := range archive.Files {
		name := filepath.Join(h.dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sections {
		for _, row := range s.Rows {
			if err := h.execute(row); err != nil {
				t.Errorf("%s: %s %s: %v", row.Verb, row.Kind, row.Line, err)
			}
		}
	}
}

// environment matches variables before the words of a command.
var environment = regexp.MustCompile(`^(?:[A-Z_]+=(?:'[^']*'|\S*) )*`)

// execute executes one row, and returns what is not as expected.
func (h *host) execute(row scriptcmd.Row) error {
	line := row.Line
	if row.Kind != scriptcmd.Prepare {
		set := environment.FindString(line)
		line = set + "podrun " + line[len(set):]
	}
	want, err := regexp.Compile("(?m)" + row.Want)
	if err != nil {
		return err
	}
	check := func() error {
		cmd := h.command("sh", "-c", line)
		cmd.Dir = h.dir
		if row.Kind == scriptcmd.Interrupt {
			return interrupted(cmd, want)
		}
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != row.Code || !want.Match(out) {
			return fmt.Errorf("exit code %d (%v), want %d and %q:\n%s", code, err, row.Code, row.Want, out)
		}
		return nil
	}
	if !row.Repeat {
		return check()
	}
	scriptcmd.Poll(func() bool {
		err = check()
		return err == nil
	})
	return err
}

// output collects what a command prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) matches(want *regexp.Regexp) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return want.Match(o.text.Bytes())
}

// interrupted runs a command until its output matches, and interrupts it.
func interrupted(cmd *exec.Cmd, want *regexp.Regexp) error {
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Args[2] = "exec " + cmd.Args[2] // the signal reaches podrun
	if err := cmd.Start(); err != nil {
		return err
	}
	found := scriptcmd.Poll(func() bool { return out.matches(want) })
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		return fmt.Errorf("it has ended: %w:\n%s", err, out.text.Bytes())
	}
	_ = cmd.Wait() // its exit code says that it was interrupted
	if !found {
		return fmt.Errorf("it never said %q, but:\n%s", want, out.text.Bytes())
	}
	return nil
}
