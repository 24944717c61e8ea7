package stop

import (
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podstop"
)

func stopFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "wait this many `SECONDS` before SIGKILL, instead of the pod's own grace period"},
		&cli.BoolFlag{Name: "force", Usage: "end the pod at once, even if its supervisor does not answer"},
	}
}

func stopOptionsOf(c *cli.Context) (podstop.StopOptions, error) {
	how := podstop.StopOptions{Force: c.Bool("force")}
	if c.IsSet("grace-period") {
		g := c.Int64("grace-period")
		if g < 0 {
			return how, cmdutil.UsageErrorf(c.Command.Name, "--grace-period must not be negative")
		}
		how.Grace = &g
	}
	if how.Force {
		if how.Grace != nil && *how.Grace != 0 {
			return how, cmdutil.UsageErrorf(c.Command.Name, "--force ends the pod at once: it allows no --grace-period but 0")
		}
		how.Grace = new(int64)
	}
	return how, nil
}
