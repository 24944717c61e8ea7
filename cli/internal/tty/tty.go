// Package tty is what the command line knows about terminals: which stream is
// one, how wide it is, whether to use colour, and what may be written to it.
package tty

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// File gives the terminal behind a stream, if the stream is one.
func File(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// Size is a terminal's size in characters; 0, 0 when it cannot be had.
func Size(f *os.File) (cols, rows int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return cols, rows
}

// Raw puts a terminal into raw mode; restore, which may be called twice, puts it
// back.
func Raw(f *os.File) (restore func(), err error) {
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(int(f.Fd()), old) }, nil
}

// Colour says whether to colour what goes to stream: only a terminal, and not
// against the user's will (no-color.org, CLICOLOR_FORCE, TERM=dumb).
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

// Reset ends every colour.
const Reset = "\x1b[0m"

// palette has the six colours that are readable on light and dark grounds.
var palette = [...]string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"}

// Nth is the colour of the n-th of several things; it is the same in every run.
func Nth(n int) string { return palette[n%len(palette)] }

// Resize gives a pseudo-terminal the size of another terminal.
func Resize(master, like *os.File) error { return ResizeBy(master, like, 0) }

// ResizeBy makes it larger by some lines and columns.
func ResizeBy(master, like *os.File, more uint16) error {
	size, err := unix.IoctlGetWinsize(int(like.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return err
	}
	size.Row, size.Col = size.Row+more, size.Col+more
	raw, err := master.SyscallConn() // not Fd, which would end its non-blocking mode
	if err != nil {
		return err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) { serr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); err != nil {
		return err
	}
	return serr
}
