package tty

import (
	"os"

	"golang.org/x/term"
)

// Hidden reads a line from a terminal that does not show it.
func Hidden(f *os.File) (string, error) {
	b, err := term.ReadPassword(int(f.Fd()))
	return string(b), err
}
