package vm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// commands are the commands of a script beside testscript's own and the places.
func commands(m *machine) map[string]scriptcmd.Command {
	return map[string]scriptcmd.Command{
		"code":       scriptcmd.Code,
		"eventually": scriptcmd.Eventually(repeated),
		"cut":        func(ts *testscript.TestScript, neg bool, args []string) { rebootCommand(ts, m, neg, args, "cut", "up") },
		"reboot":     func(ts *testscript.TestScript, neg bool, args []string) { rebootCommand(ts, m, neg, args, "reboot") },
	}
}

// envKey is the key, in a script's environment, of the variables that a place needs to find the
// machine.
type envKey struct{}

// setUp creates a script's directory on the machine, with the script's files.
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

// repeated returns the command of one repetition.
func repeated(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Env = append(os.Environ(), ts.Value(envKey{}).([]string)...)
	return cmd
}

// rebootCommand stops the machine and boots it from its disk, by these verbs of scripts/vm.
func rebootCommand(ts *testscript.TestScript, m *machine, neg bool, args []string, verbs ...string) {
	if neg || len(args) > 0 {
		ts.Fatalf("cut and reboot take no arguments")
	}
	for _, verb := range verbs {
		if out, err := m.vm(verb).CombinedOutput(); err != nil {
			ts.Fatalf("vm %s: %v\n%s", verb, err, out)
		}
	}
}
