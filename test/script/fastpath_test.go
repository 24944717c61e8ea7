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

// fastPath says "fastpath quick|whole WORDS...": podrun says the same on both streams, and ends with
// the same code, whether its quick front is asked first or not; and it is the quick one, or the
// whole, which answers. Ages may change in between: then it is asked again, and at last they do
// not count.
func fastPath(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[0] != "quick" && args[0] != "whole" {
		ts.Fatalf("usage: fastpath quick|whole WORDS...")
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
	const whole = "_PODRUN_CLI=none" // internal/stage/hasten asks the quick front no more
	same := false
	for range 20 {
		if same = results() == results(whole); same {
			break
		}
	}
	// On a slow machine there may be no second in which both have said it.
	if !same && !scriptcmd.Poll(func() bool { return withoutAges(results()) == withoutAges(results(whole)) }) {
		ts.Fatalf("podrun %s says\n%s\nthe whole front\n%s", strings.Join(args[1:], " "), results(), results(whole))
	}
	// Of the packages that are initialised the whole front has Kubernetes'.
	if is := strings.Contains(results("GODEBUG=inittrace=1"), "init k8s.io"); is != (args[0] == "whole") {
		ts.Fatalf("podrun %s is not answered by the %s front", strings.Join(args[1:], " "), args[0])
	}
}

// agePattern are how long ago something was, and the room that columns leave for it.
var agePattern = regexp.MustCompile(`\b(\d+[smhd])+\b| +`)

func withoutAges(text string) string { return agePattern.ReplaceAllString(text, " ") }
