package podaction

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podstop"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/store"
)

// podOptions name the pods of a command.
type podOptions struct {
	env       *cmdutil.Env
	dirs      store.Dirs
	namespace string
	words     []string
	chosen    *resource.Selection // instead of words
}

// Complete reads the names, and the selection of a command that has the flags for one.
func (o *podOptions) Complete(c *cli.Context) (err error) {
	o.namespace, o.words = c.String("namespace"), c.Args().Slice()
	o.chosen, err = resource.SelectionOf(c, len(o.words)+len(c.StringSlice("filename")) > 0)
	return err
}

func graceFlags() []cli.Flag {
	return []cli.Flag{
		gracePeriodFlag(),
		&cli.BoolFlag{Name: "force", Usage: "kill the pod at once, even if its supervisor does not answer"},
	}
}

func gracePeriodFlag() cli.Flag {
	return &cli.Int64Flag{Name: "grace-period", Value: -1, Usage: "wait this many `SECONDS` before SIGKILL, instead of the pod's own grace period"}
}

// graceOptions are the options of a command that stops pods.
type graceOptions struct {
	command string
	grace   *int64 // seconds; nil: the pod's own
	force   bool
}

func (o *graceOptions) complete(c *cli.Context) {
	o.command, o.force = c.Command.Name, c.Bool("force")
	if c.IsSet("grace-period") {
		o.grace = new(c.Int64("grace-period"))
	}
}

func (o *graceOptions) validate() error {
	switch {
	case o.grace != nil && *o.grace < 0:
		return cmdutil.UsageErrorf(o.command, "--grace-period must not be negative")
	case o.force && o.grace != nil && *o.grace != 0:
		return cmdutil.UsageErrorf(o.command, "--force and --grace-period greater than 0 cannot be specified together")
	}
	return nil
}

// how returns how the pods are stopped.
func (o *graceOptions) how(env *cmdutil.Env) podclient.StopOptions {
	how := podclient.StopOptions{Grace: o.grace}
	if o.force {
		how = podstop.Force(env.ErrOut)
	}
	how.Progress = env.ErrOut
	return how
}

func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Usage: "return when the pods are ready, not as soon as they run"},
		&cli.DurationFlag{Name: "timeout", Usage: "give up waiting after this `DURATION` (90s, 5m); the pods keep running"},
	}
}

// waitOptions are the options of a command that waits for pods.
type waitOptions struct {
	command string
	goal    follow.Goal
	timeout time.Duration // 0: none
}

func (o *waitOptions) complete(c *cli.Context) {
	o.command, o.goal, o.timeout = c.Command.Name, follow.GoalFor(c.Bool("wait")), c.Duration("timeout")
}

func (o *waitOptions) validate() error {
	if o.timeout < 0 {
		return cmdutil.UsageErrorf(o.command, "--timeout must not be negative")
	}
	return nil
}
