// Package undo undoes, in reverse order, the steps of an action when a later step fails. Usage:
// push the undo right after each step, release on success.
package undo

import (
	"errors"
	"fmt"
)

// Stack is a list of undo functions. The zero value is ready. It is for one goroutine.
type Stack struct {
	steps []step
}

type step struct {
	what string
	undo func() error
}

// Push records how to undo the last step. what names the step in errors, such as "unmount /run/x".
func (s *Stack) Push(what string, undo func() error) {
	s.steps = append(s.steps, step{what, undo})
}

// Undo runs every undo function, the last pushed first, whether or not others fail, and joins their
// errors. The stack is empty afterwards, so a deferred Undo after Release does nothing.
func (s *Stack) Undo() error {
	var errs []error
	for len(s.steps) > 0 {
		last := s.steps[len(s.steps)-1]
		s.steps = s.steps[:len(s.steps)-1]
		if err := last.undo(); err != nil {
			errs = append(errs, fmt.Errorf("undo: %s: %w", last.what, err))
		}
	}
	return errors.Join(errs...)
}

// Release drops the undo functions: the steps stay.
func (s *Stack) Release() { s.steps = nil }
