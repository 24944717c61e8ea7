package cli

import (
	"context"
	"errors"
	"os"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// execution is one command in a container, of this front.
type execution struct {
	front    *front
	pod      store.Pod
	stdin    bool     // pass our standard input on
	terminal *os.File // ours, if the command gets one

	container string
	keys      []byte // leave the command behind
}

// run starts the command, passes everything on and returns its exit code.
func (x *execution) run(ctx context.Context, req wire.ExecRequest) (int, error) {
	c := &remote.Command{
		Pod: x.pod, Container: x.container, Stdin: x.stdin, Terminal: x.terminal, Keys: x.keys,
		In: x.front.in, Out: x.front.out, Err: x.front.err, Signals: x.front.signals,
	}
	code, err := c.Run(ctx, req)
	if sig := (*remote.Interrupted)(nil); errors.As(err, &sig) {
		return 0, interrupted(sig.Signal)
	}
	if no := (*remote.Refused)(nil); errors.As(err, &no) {
		return 0, &exitError{code: no.Code, err: no.Err}
	}
	return code, err
}
