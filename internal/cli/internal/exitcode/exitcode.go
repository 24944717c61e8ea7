// Package exitcode has podrun's exit codes and the errors that carry one.
package exitcode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/podrun/podrun/internal/report"
)

// Exit codes. The reference page is generated from Table.
const (
	OK         = 0
	Failure    = 1
	Usage      = 2
	Internal   = 125
	CannotRun  = 126
	NotFound   = 127
	Hangup     = 129
	Interrupt  = 130
	BrokenPipe = 141
	Terminated = 143
)

// Table describes when each code is used.
var Table = []struct {
	Code int
	When string
}{
	{OK, "The command succeeded. For `up` in the foreground: the pod succeeded. For `up -d`: the pod is running, or has succeeded. In a systemd unit: also when systemd has stopped `up`."},
	{Failure, "The command failed, or the pod did. `diff`: there are differences; after an error it ends with 2. With `run`, and `up --exit-code-from CONTAINER`, the code is the container's; `up` of a Job, and `up -d --wait`, ends with the code of the container that failed last."},
	{Usage, "The command line or a manifest is wrong. Nothing was done."},
	{Internal, "podrun itself failed: this machine cannot run pods (`podrun doctor` shows why), or `exec` could not reach the container, or `run` could not start it."},
	{CannotRun, "`exec`, `run`: the command was found but cannot be executed."},
	{NotFound, "`exec`, `run`: the command was not found in the container."},
	{Hangup, "The terminal was closed (SIGHUP). A pod in the foreground was stopped and removed."},
	{Interrupt, "Interrupted by Ctrl-C (SIGINT). A pod in the foreground was stopped and removed."},
	{BrokenPipe, "The reader of the output has gone (SIGPIPE): `podrun events -w | head`."},
	{Terminated, "Ended by SIGTERM. A pod in the foreground was stopped and removed."},
}

// Error ends podrun with a certain exit code. If Err is nil, everything has been reported.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit with code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// As returns the Error that err wraps, or nil.
func As(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

// Unreported returns the part of an error that is not yet reported, or nil.
func Unreported(err error) error {
	if e, ok := err.(*Error); ok && e.Err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || As(err) == nil {
		return err
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, Unreported(e))
	}
	return errors.Join(rest...)
}

// Of returns the exit code of an error.
func Of(err error) int {
	if e := As(err); e != nil {
		return e.Code
	}
	switch report.ClassOf(err) {
	case report.Usage:
		return Usage
	case report.Internal, report.Host:
		return Internal
	}
	return Failure
}

// Interrupted returns the error of a command that a signal has ended, when the user has already been
// informed.
func Interrupted(sig os.Signal) error {
	switch sig {
	case syscall.SIGTERM:
		return &Error{Code: Terminated}
	case syscall.SIGHUP:
		return &Error{Code: Hangup}
	}
	return &Error{Code: Interrupt}
}

// Report prints the part of a command's error that is not yet reported, and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return OK
	}
	if rest := Unreported(err); rest != nil {
		report.Print(w, rest)
	}
	return Of(err)
}

// InContainer returns the error of a command that otherwise exits with the code of a program in a
// container: a failure of podrun itself gets another code than 1.
func InContainer(err error) error {
	if err != nil && Of(err) == Failure && As(err) == nil {
		return &Error{Code: Internal, Err: err}
	}
	return err
}
