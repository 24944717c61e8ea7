package decode

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxErrors bounds the mistakes that one Load reports: a hostile file can have a mistake in every second
// byte.
const maxErrors = 500

// maxMessage is the maximum length of a message, in bytes.
const maxMessage = 500

// Error is one mistake in a manifest.
type Error struct {
	File     string
	Document int    // 1-based; 0: the file as a whole
	Line     int    // 1-based, in the file; 0: unknown
	Field    string // spec.containers[0].image; empty: the document as a whole
	Message  string
}

// Error returns the mistake with its position in the file.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Document > 0 {
		fmt.Fprintf(&b, ": document %d", e.Document)
		if e.Line > 0 {
			fmt.Fprintf(&b, ", line %d", e.Line)
		}
	}
	if e.Field != "" {
		b.WriteString(": " + printable(e.Field))
	}
	b.WriteString(": " + printable(e.Message))
	return b.String()
}

// Errors is the list of all mistakes of a file, in the order of the file. It is the error of Decode and
// Load.
type Errors struct {
	List      []*Error
	Truncated bool // there are mistakes beyond the first 500
}

// Error returns one line per mistake.
func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.List)+1)
	for _, mistake := range e.List {
		lines = append(lines, mistake.Error())
	}
	if e.Truncated {
		lines = append(lines, fmt.Sprintf("and more; these are the first %d", len(e.List)))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns every mistake, for errors.As.
func (e *Errors) Unwrap() []error {
	errs := make([]error, len(e.List))
	for i, mistake := range e.List {
		errs[i] = mistake
	}
	return errs
}

func (e *Errors) full() bool { return len(e.List) >= maxErrors }

// Add appends a mistake, unless there are too many.
func (e *Errors) Add(mistake *Error) {
	if e.full() {
		e.Truncated = true
		return
	}
	e.List = append(e.List, mistake)
}

// Err sorts the mistakes, removes duplicates, and returns nil if there are none.
func (e *Errors) Err() error {
	if len(e.List) == 0 {
		return nil
	}
	slices.SortStableFunc(e.List, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Document, b.Document), cmp.Compare(a.Line, b.Line),
			strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	e.List = slices.CompactFunc(e.List, func(a, b *Error) bool { return *a == *b })
	return e
}

// printable returns a mistake as one line of bounded length, whatever names the manifest has.
func printable(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
