package main

import (
	"context"
	"errors"
	"os"

	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// execIn runs a command in a container.
func execIn(words []string) (code int, ok bool) {
	o, ok := parseExec(words)
	if !ok {
		return 0, false
	}
	p, plan, err := recorded(o.namespace, o.pod)
	if err != nil || !p.Alive() {
		return 0, false
	}
	if _, known := plan.Container(o.container); o.container != "" && !known {
		return 0, false
	}
	container, err := podclient.Choose(os.Stderr, p, plan, o.container)
	if err != nil {
		return codeOf(0, err), true
	}
	c := &podclient.Command{
		Pod: p, Container: container.Name, Stdin: o.stdin,
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: podclient.Signals,
	}
	code, err = c.Run(context.Background(), wire.ExecRequest{Container: container.Name, Args: o.command})
	if errors.Is(err, podclient.ErrNotRunning) {
		err = report.New(report.Internal, "podrun ps shows its state", "cannot exec in pod %q: it is not running", p.Name)
	}
	return codeOf(code, err), true
}

// codeOf prints an error, and returns the exit code.
func codeOf(code int, err error) int {
	if err == nil {
		return code
	}
	return ended(exitcode.InContainer(err))
}
