package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
)

// Exit codes. The reference page of exit codes is generated from exitCodes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInternal    = 125
	exitCannotRun   = 126
	exitNotFound    = 127
	exitHangup      = 129
	exitInterrupted = 130
	exitUnread      = 141
	exitTerminated  = 143
)

// exitCodes says when each code is used.
var exitCodes = []struct {
	code int
	when string
}{
	{exitOK, "The command did what was asked. For `up` in the foreground: the pod succeeded. For `up -d`: the pod is running, or has succeeded. In a unit of systemd: also when `up` was told to end."},
	{exitFailure, "The command failed, or the pod did. With `up --exit-code-from CONTAINER` the code is that container's; `up` of a Job, and `up -d --wait`, ends with the code of the container that failed last."},
	{exitUsage, "The command line or a manifest is wrong. Nothing was done."},
	{exitInternal, "podrun itself could not do its part: this machine cannot run pods (`podrun doctor` says why), or `exec` could not reach the container."},
	{exitCannotRun, "`exec`: the command was found but cannot be executed."},
	{exitNotFound, "`exec`: the command was not found in the container."},
	{exitHangup, "The terminal was closed (SIGHUP). A pod in the foreground was stopped and removed."},
	{exitInterrupted, "Interrupted by Ctrl-C (SIGINT). A pod in the foreground was stopped and removed."},
	{exitUnread, "Nobody reads the output any more (SIGPIPE): `podrun events -w | head`."},
	{exitTerminated, "Ended by SIGTERM. A pod in the foreground was stopped and removed."},
}

// exitError ends podrun with a code of its own. Without err nothing is left to be said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit with code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func asExit(err error) *exitError {
	var e *exitError
	errors.As(err, &e)
	return e
}

// unsaid is what is left to be said of an error, or nil.
func unsaid(err error) error {
	if e, ok := err.(*exitError); ok && e.err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || asExit(err) == nil {
		return err
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, unsaid(e))
	}
	return errors.Join(rest...)
}

// exitCode is the code for an error.
func exitCode(err error) int {
	if e := asExit(err); e != nil {
		return e.code
	}
	if no := (*remote.Refused)(nil); errors.As(err, &no) {
		return no.Code
	}
	switch report.ClassOf(err) {
	case report.Usage:
		return exitUsage
	case report.Internal:
		return exitInternal
	}
	return exitFailure
}

// interrupted is the end of a command by a signal, of which the user was told.
func interrupted(sig os.Signal) error {
	switch sig {
	case syscall.SIGTERM:
		return &exitError{code: exitTerminated}
	case syscall.SIGHUP:
		return &exitError{code: exitHangup}
	}
	return &exitError{code: exitInterrupted}
}

// usageErrorf is a wrong command line of a command.
func usageErrorf(command, format string, args ...any) error {
	return report.New(report.Usage, "podrun "+command+" --help", format, args...)
}
