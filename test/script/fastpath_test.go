package script

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// fastPath implements "fastpath fast|cli ARG...": podrun's output on both streams and its exit
// code are the same with and without the fast path, and the named one of the two
// handles the command. Ages may change between the runs: then it repeats them, and
// finally ignores ages.
func fastPath(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "fast" && args[0] != "cli" {
		ts.Fatalf("usage: fastpath fast|cli ARG...")
	}
	host := hostOf(ts)
	results := func(env ...string) string {
		cmd := host.podrun(args[1:]...)
		cmd.Env = append(slices.Clone(cmd.Env), env...)
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		var exit *exec.ExitError
		if failed := cmd.Run(); failed != nil && !errors.As(failed, &exit) {
			ts.Fatalf("run podrun: %v", failed)
		}
		return fmt.Sprintf("stdout:\n%sstderr:\n%scode %d\n", &out, &err, cmd.ProcessState.ExitCode())
	}
	const cliOnly = "_PODRUN_CLI=none" // disables the fast path
	same := false
	for range 20 {
		if same = results() == results(cliOnly); same {
			break
		}
	}
	// On a slow machine the ages of two runs may always differ.
	if !same && !scriptcmd.Poll(func() bool { return withoutAges(results()) == withoutAges(results(cliOnly)) }) {
		ts.Fatalf("podrun %s prints\n%s\nthe CLI\n%s", strings.Join(args[1:], " "), results(), results(cliOnly))
	}
	// Only the CLI initializes Kubernetes' packages.
	if is := strings.Contains(results("GODEBUG=inittrace=1"), "init k8s.io"); is != (args[0] == "cli") {
		ts.Fatalf("podrun %s is not handled by the %s program", strings.Join(args[1:], " "), args[0])
	}
}

// agePattern matches ages and the spaces between columns.
var agePattern = regexp.MustCompile(`\b(\d+[smhd])+\b| +`)

func withoutAges(text string) string { return agePattern.ReplaceAllString(text, " ") }
