// Package scriptcmd provides the commands that the scripts of test/script and test/vm share, in
// addition to testscript's.
package scriptcmd

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Timeout bounds every operation, in an emulated machine too.
const Timeout = 3 * time.Minute

// Command is a command of a script.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// CheckArgs fails a script that negates a command or gives fewer than n arguments.
func CheckArgs(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", usage)
	}
}

// Code is "code N CMD [ARG...]": it runs a command whose exit code must be N.
func Code(ts *testscript.TestScript, neg bool, args []string) {
	CheckArgs(ts, neg, args, 2, "code N CMD [ARG...]")
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

// Eventually is "eventually REGEXP CMD [ARG...]": it runs a command until its output matches.
// prepare makes the command from the words.
func Eventually(prepare func(ts *testscript.TestScript, words []string) *exec.Cmd) Command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		CheckArgs(ts, neg, args, 2, "eventually REGEXP CMD [ARG...]")
		want, err := regexp.Compile("(?m)" + args[0])
		ts.Check(err)
		var last []byte
		if !Poll(func() bool {
			last, _ = prepare(ts, args[1:]).CombinedOutput()
			return want.Match(last)
		}) {
			ts.Fatalf("%s never said %q, but:\n%s", strings.Join(args[1:], " "), args[0], last)
		}
	}
}

// Poll calls ok until it returns true, for at most Timeout.
func Poll(ok func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
