// Package report is how an error reaches the user: one sentence, one hint, one
// exit code. Rooms return plain wrapped errors; where they know the cure they
// return (or wrap) an *Error, and the command line says it once.
package report

import (
	"errors"
	"fmt"
	"syscall"
)

// Class sorts errors by who has to act; each class has one exit code.
type Class int

const (
	Failure  Class = iota // the verb failed, or the pod did: exit 1
	Usage                 // the command line or the manifest is wrong: exit 2
	Internal              // podrun itself could not do its part: exit 125
)

// Error is an error with a hint. Error() is the sentence without the hint.
type Error struct {
	Class Class
	Hint  string // what to type or change; may be empty
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// New makes an *Error; format follows fmt.Errorf, %w included.
func New(class Class, hint, format string, args ...any) *Error {
	return &Error{Class: class, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// Hint finds the outermost hint in err's chain, or "". A full disk has one wherever
// it was met.
func Hint(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "free some disk space: podrun image rm and podrun down give some back"
	}
	return ""
}
