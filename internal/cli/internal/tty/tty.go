// Package tty is the CLI's access to terminals: which stream is a terminal, its size and colours, and
// which output is safe on it.
package tty

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// File returns the terminal behind a stream, if the stream is one.
func File(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// Size returns a terminal's size in characters; 0, 0 if it is unknown.
func Size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return cols, rows
}

// Raw puts a terminal into raw mode; restore, which may be called twice, restores the old mode.
func Raw(f *os.File) (restore func(), err error) {
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(int(f.Fd()), old) }, nil
}

// Colour reports whether to colour the output to stream: only on a terminal, and not if the user disables
// it (no-color.org, CLICOLOR_FORCE, TERM=dumb).
func Colour(stream any, getenv func(string) string) bool {
	if getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	_, ok := File(stream)
	return ok
}

// Reset ends all colours.
const Reset = "\x1b[0m"

// palette has the six colours that are readable on light and dark backgrounds.
var palette = [...]string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"}

// Nth returns the colour of the n-th of several items; it is the same in every run.
func Nth(n int) string { return palette[n%len(palette)] }

// Resize sets a pseudo-terminal to the size of another terminal.
func Resize(master, like *os.File) error { return ResizeBy(master, like, 0) }

// ResizeBy is Resize that adds some lines and columns.
func ResizeBy(master, like *os.File, more uint16) error {
	size, err := unix.IoctlGetWinsize(int(like.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return err
	}
	size.Row, size.Col = size.Row+more, size.Col+more
	return setSize(master, size)
}

// FollowSizes sets a pseudo-terminal to one size after the other, in characters, until there is no next one.
func FollowSizes(master func() *os.File, next func() (cols, rows uint16, ok bool)) {
	for cols, rows, ok := next(); ok; cols, rows, ok = next() {
		_ = setSize(master(), &unix.Winsize{Col: cols, Row: rows}) // fails when the terminal is gone
	}
}

func setSize(master *os.File, size *unix.Winsize) error {
	raw, err := master.SyscallConn() // not Fd, which would end non-blocking mode
	if err != nil {
		return err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) { serr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); err != nil {
		return err
	}
	return serr
}
