package main

import (
	"context"
	"os"

	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
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
	container, err := podclient.ChooseContainer(os.Stderr, p, plan, o.container)
	if err != nil {
		return reportError(exitcode.InContainer(err)), true
	}
	c := &podclient.Command{
		Pod: p, Container: container.Name, Stdin: o.stdin,
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: podclient.Signals,
	}
	code, err = c.Run(context.Background(), wire.ExecRequest{Container: container.Name, Args: o.command})
	return reportError(exitcode.InContainer(podclient.ExitError("exec in", p, code, err))), true
}
