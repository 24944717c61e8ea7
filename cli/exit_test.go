package cli

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/report"
)

func TestExitCode(t *testing.T) {
	ctrlC := interrupted(syscall.SIGINT)
	broken := errors.New("cannot remove pod web")
	for name, tc := range map[string]struct {
		err    error
		code   int
		unsaid string
	}{
		"failure":               {broken, 1, "cannot remove pod web"},
		"usage":                 {fmt.Errorf("up: %w", usageErrorf("up", "no file")), 2, "up: no file"},
		"internal":              {report.New(report.Internal, "", "no kernel"), 125, "no kernel"},
		"interrupted":           {ctrlC, 130, ""},
		"the command's own":     {&exitError{code: 7}, 7, ""},
		"with a word":           {&exitError{127, broken}, 127, "cannot remove pod web"},
		"interrupted, and more": {errors.Join(nil, errors.Join(broken, ctrlC)), 130, "cannot remove pod web"},
	} {
		if got := exitCode(tc.err); got != tc.code {
			t.Errorf("%s: code %d, want %d", name, got, tc.code)
		}
		got := ""
		if rest := unsaid(tc.err); rest != nil {
			got = rest.Error()
		}
		if got != tc.unsaid {
			t.Errorf("%s: left to say is %q, want %q", name, got, tc.unsaid)
		}
	}
}
