// Package report defines how an error reaches the user: one sentence, one hint, one exit code.
// Packages return plain wrapped errors. If they have a hint, they return (or wrap) an *Error, and
// the CLI prints it once.
package report

import (
	"errors"
	"fmt"
	"syscall"
)

// Class classifies errors by cause; each class has one exit code.
type Class int

const (
	Failure  Class = iota // the command or the pod failed: exit 1
	Usage                 // the command line or the manifest is wrong: exit 2
	Internal              // podrun itself could not do its part: exit 125
	Host                  // this machine cannot run the pod: exit 125
)

// Error is an error with a hint. Error() returns the sentence without the hint.
type Error struct {
	Class Class
	Hint  string // what to type or change; may be empty
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// New returns an *Error; format follows fmt.Errorf, including %w.
func New(class Class, hint, format string, args ...any) *Error {
	return &Error{Class: class, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// Hint returns the outermost hint in err's chain, or "". A full disk always has one.
func Hint(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "free some disk space: podrun image rm and podrun down free some"
	}
	return ""
}
