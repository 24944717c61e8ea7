package vm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are what a script may say beside testscript's own words and the places.
func commands(m *machine) map[string]command {
	return map[string]command{
		"code":       code,
		"eventually": eventually,
		"cut":        func(ts *testscript.TestScript, neg bool, args []string) { again(ts, m, neg, args, "cut", "up") },
		"reboot":     func(ts *testscript.TestScript, neg bool, args []string) { again(ts, m, neg, args, "reboot") },
	}
}

// envKey is where a script's environment has what a place needs to find the machine.
type envKey struct{}

// setUp gives a script its directory on the machine, with the script's files.
func (m *machine) setUp(env *testscript.Env) error {
	guest := "/home/dev/case"
	script, err := filepath.Abs(vmScript)
	if err != nil {
		return err
	}
	here := append(m.env, guestEnv+"="+guest, scriptEnv+"="+script)
	env.Vars = append(env.Vars, here...)
	env.Values[envKey{}] = here
	if out, err := m.command("root", "rm", "-rf", guest).CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	pack := exec.Command("tar", "-C", env.WorkDir, "--exclude=./.tmp", "-cf", "-", ".")
	unpack := m.command("session", "sh", "-c", "mkdir "+guest+" && tar --touch -C "+guest+" -xf -")
	if unpack.Stdin, err = pack.StdoutPipe(); err != nil {
		return err
	}
	if err := pack.Start(); err != nil {
		return err
	}
	out, err := unpack.CombinedOutput()
	if err := errors.Join(err, pack.Wait()); err != nil {
		return errors.New(err.Error() + ": " + string(out))
	}
	return nil
}

func need(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

// code N PLACE CMD [ARG...] runs a command, whose exit code must be N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "code N PLACE CMD [ARG...]")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d instead of %d", got, want)
	}
}

// eventually REGEXP PLACE CMD [ARG...] runs a command until its output matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "eventually REGEXP PLACE CMD [ARG...]")
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	var last []byte
	if !within(func() bool {
		cmd := exec.Command(path, args[2:]...)
		cmd.Env = os.Environ()
		cmd.Env = append(os.Environ(), ts.Value(envKey{}).([]string)...)
		last, _ = cmd.CombinedOutput()
		return want.Match(last)
	}) {
		ts.Fatalf("%s never said %q, but:\n%s", strings.Join(args[1:], " "), args[0], last)
	}
}

// again ends the machine and boots what was on its disk, by these verbs of scripts/vm.
func again(ts *testscript.TestScript, m *machine, neg bool, args []string, verbs ...string) {
	if neg || len(args) > 0 {
		ts.Fatalf("cut and reboot take no arguments")
	}
	for _, verb := range verbs {
		if out, err := m.vm(verb).CombinedOutput(); err != nil {
			ts.Fatalf("vm %s: %v\n%s", verb, err, out)
		}
	}
}
