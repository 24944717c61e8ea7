package tty

import (
	"os"

	"golang.org/x/term"
)

// Hidden reads a line from a terminal without echo.
func Hidden(f *os.File) (string, error) {
	b, err := term.ReadPassword(int(f.Fd()))
	return string(b), err
}
