package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Print prints an error, once, at the top level: "podrun: sentence" and, if there is one, "hint:
// …". It prints the parts of a joined error one after the other, and a hint that several of them
// share once, after the last of them.
func Print(w io.Writer, err error) {
	printed := map[string]bool{}
	var hints []string
	for _, part := range Parts(err) {
		for i, line := range strings.Split(strings.TrimRight(part.Error(), "\n"), "\n") {
			if i == 0 {
				fmt.Fprintf(w, "podrun: %s\n", Escape(line))
			} else {
				fmt.Fprintf(w, "  %s\n", Escape(line))
			}
		}
		if hint := Hint(part); hint != "" && !printed[hint] {
			printed[hint] = true
			hints = append(hints, hint)
		}
	}
	for _, hint := range hints {
		fmt.Fprintf(w, "hint: %s\n", Escape(hint))
	}
}

// A LastError is the last error of something that is tried again and again. Its zero value is no error.
type LastError struct{ text string }

// Print prints err if it differs from the last error. err may be nil.
func (l *LastError) Print(w io.Writer, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.text {
		Print(w, err)
	}
	l.text = text
}

// Parts splits an errors.Join into errors that are sentences. An error that wraps several in
// one sentence is one part.
func Parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var texts []string
	var all []error
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
		all = append(all, Parts(e)...)
	}
	if err.Error() != strings.Join(texts, "\n") {
		return []error{err}
	}
	return all
}

// ClassOf returns the outermost class in err's chain. An error without one is a Failure. For a
// joined error the first part that is not a Failure decides.
func ClassOf(err error) Class {
	for _, part := range Parts(err) {
		var e *Error
		if errors.As(part, &e) && e.Class != Failure {
			return e.Class
		}
	}
	return Failure
}
