package build_test

import (
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestTerminal: stdin, stdinOnce and tty reach the plan; a terminal has a TERM, unless the image sets
// another.
func TestTerminal(t *testing.T) {
	image := pod.Image{Cmd: []string{"sh"}}
	for fields, want := range map[string]struct {
		stdin, once, tty bool
		term             string
	}{
		"":                                      {},
		"stdin: true":                           {stdin: true},
		"stdin: true, stdinOnce: true":          {stdin: true, once: true},
		"tty: true":                             {tty: true, term: "TERM=xterm"},
		"stdin: true, tty: true, workingDir: /": {stdin: true, tty: true, term: "TERM=xterm"},
	} {
		c := mustBuild(t, podYAML(one(fields)), image).Containers[0]
		if c.Stdin != want.stdin || c.StdinOnce != want.once || c.TTY != want.tty || slices.Contains(c.Env, "TERM=xterm") != (want.term != "") {
			t.Errorf("%q: stdin %t, once %t, tty %t, %q", fields, c.Stdin, c.StdinOnce, c.TTY, c.Env)
		}
	}
	image.Env = []string{"TERM=vt100"}
	if env := mustBuild(t, podYAML(one("tty: true")), image).Containers[0].Env; !slices.Contains(env, "TERM=vt100") || slices.Contains(env, "TERM=xterm") {
		t.Errorf("the image's TERM is lost: %q", env)
	}
}
