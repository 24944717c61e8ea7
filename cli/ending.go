package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/wire"
)

// ending is how a pod is to be brought to its end.
type ending struct {
	grace *int64 // seconds; nil: the pod's own
	force bool

	remove bool // the pod is removed then
}

func (e ending) request() wire.StopRequest {
	return wire.StopRequest{GraceSeconds: e.grace, Remove: e.remove}
}

func endingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "wait this many `SECONDS` before SIGKILL, instead of the pod's own grace period"},
		&cli.BoolFlag{Name: "force", Usage: "end the pod at once, even if its supervisor does not answer"},
	}
}

func endingOf(c *cli.Context) (ending, error) {
	how := ending{force: c.Bool("force")}
	if c.IsSet("grace-period") {
		g := c.Int64("grace-period")
		if g < 0 {
			return how, usageErrorf(c.Command.Name, "--grace-period must not be negative")
		}
		how.grace = &g
	}
	if how.force {
		if how.grace != nil && *how.grace != 0 {
			return how, usageErrorf(c.Command.Name, "--force ends the pod at once: it allows no --grace-period but 0")
		}
		how.grace = new(int64)
	}
	return how, nil
}
