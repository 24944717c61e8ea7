package cli

import (
	"bytes"

	"github.com/podrun/podrun/cli/internal/tty"
)

// show writes text that programs may want as it is, and that is foreign: a terminal gets
// nothing of it that it would obey, but for colours.
func (f *front) show(text []byte) error {
	if _, is := tty.File(f.out); is {
		var safe []byte
		for line := range bytes.Lines(text) {
			rest, ended := bytes.CutSuffix(line, []byte("\n"))
			safe = append(safe, tty.Safe(rest)...)
			if ended {
				safe = append(safe, '\n')
			}
		}
		text = safe
	}
	_, err := f.out.Write(text)
	return err
}
