package script

import (
	"os"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// tmux COLSxROWS starts tmux with a shell in a window of that size, until the end of the script;
// tmux -S $SCREEN controls it.
func tmux(ts *testscript.TestScript, neg bool, args []string) {
	scriptcmd.CheckArgs(ts, neg, args, 1, "tmux COLSxROWS")
	cols, rows, ok := strings.Cut(args[0], "x")
	if !ok {
		ts.Fatalf("%q is no size: COLSxROWS", args[0])
	}
	// A socket's path must be short; a script's directory may be long.
	dir, err := os.MkdirTemp("", "screen")
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(dir) })
	socket := dir + "/s"
	tmux := func(args ...string) *exec.Cmd {
		cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", socket}, args...)...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), append(hostOf(ts).env, "PS1=$ ", "SHELL=/bin/sh")
		return cmd
	}
	ts.Defer(func() { tmux("kill-server").Run() }) // it may have ended
	if out, err := tmux("new-session", "-d", "-x", cols, "-y", rows, "-s", "0", "exec sh").CombinedOutput(); err != nil {
		ts.Fatalf("start tmux: %v\n%s", err, out)
	}
	ts.Setenv("SCREEN", socket)
}
