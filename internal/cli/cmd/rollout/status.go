package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/workload"
)

func newStatusCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show the status of a rollout until it is complete",
		ArgsUsage: usage,
		Description: `Shows what the rollout of the newest revision waits for, until it is complete.
It fails if the rollout exceeds its progress deadline.

Examples:
  podrun rollout status deployment/web
  podrun rollout status deployment/web --watch=false
  podrun rollout status statefulset/db --timeout 5m
`,
		Flags: resource.TargetFlags(
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Value: true, Usage: "wait until the rollout is complete; --watch=false shows its status once"},
			&cli.DurationFlag{Name: "timeout", Usage: "give up after this `DURATION`; 0 never gives up"},
			&cli.IntFlag{Name: "revision", Usage: "fail if another revision than `N` is rolled out"},
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &statusOptions{targets: targets{env: env}} }),
	}
}

type statusOptions struct {
	targets
	watch    bool
	timeout  time.Duration
	revision int // 0: any
}

func (o *statusOptions) Complete(c *cli.Context) error {
	o.watch, o.timeout, o.revision = c.Bool("watch"), c.Duration("timeout"), c.Int("revision")
	return o.complete(c)
}

func (o *statusOptions) Validate() error {
	if o.timeout < 0 || o.revision < 0 {
		return cmdutil.UsageErrorf("rollout status", "--timeout and --revision must not be negative")
	}
	return nil
}

// Run waits for one workload after the other.
func (o *statusOptions) Run(ctx context.Context) error {
	list, err := o.workloads()
	if err != nil {
		return err
	}
	return o.env.UntilInterrupted(ctx, func(ctx context.Context) error {
		ctx, cancel := cmdutil.WithTimeout(ctx, o.timeout)
		defer cancel()
		var errs []error
		for _, v := range list {
			if alive, _, _ := v.Workload.Controller(); !alive { // since a reboot: controller.LookAfter restarts others
				fmt.Fprintf(o.env.ErrOut, "podrun: %s has no controller: podrun apply or podrun rollout restart starts one\n", v.Name())
			}
			errs = append(errs, o.await(ctx, v.Workload, v.Name()))
		}
		return errors.Join(errs...)
	})
}

// await prints each change of a rollout's status until it is complete.
func (o *statusOptions) await(ctx context.Context, w store.Workload, name string) error {
	last := ""
	for {
		v, err := resource.LoadWorkload(o.dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			return report.New(report.Failure, "", "%s was removed", name)
		}
		if err != nil {
			return err
		}
		d := v.Decide(time.Now())
		if err := o.checkRevision(&d); err != nil {
			return err
		}
		text, done, err := follow.Status(v, &d)
		if err != nil {
			return err
		}
		if text != last {
			fmt.Fprintln(o.env.Out, text)
			last = text
		}
		if done || !o.watch {
			return nil
		}
		err = sleep.For(ctx, 10*podclient.PollTime)
		if errors.Is(err, context.DeadlineExceeded) {
			return report.New(report.Failure, "podrun get pods and podrun events "+name+" show why; the rollout continues", "timed out waiting for the rollout of %s", name)
		}
		if err != nil {
			return err
		}
	}
}

// checkRevision refuses a rollout of another revision than --revision names.
func (o *statusOptions) checkRevision(d *workload.Decision) error {
	all := d.State.Revisions
	if n := len(all); o.revision > 0 && n > 0 && all[n-1].Number != o.revision {
		return report.New(report.Failure, "podrun rollout history lists the revisions", "desired revision (%d) is different from the running revision (%d)", o.revision, all[n-1].Number)
	}
	return nil
}
