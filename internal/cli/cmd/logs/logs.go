// Package logs has the command logs.
package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/logstream"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command logs.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show the logs of a container",
		ArgsUsage: "POD... | -l SELECTOR",
		Description: `Shows the output of the current or last instance of a container. With -f it
waits for a container that has not started, continues over restarts and the
rotation of the log, and exits when the container has ended for good.

On a terminal, the output of a container can set colours and nothing else; --raw
allows all control sequences. In a pipe the output is unchanged.

Examples:
  podrun logs web
  podrun logs -f web -c frontend
  podrun logs web --all-containers --prefix
  podrun logs web --since 5m --timestamps
  podrun logs -f -l app=web --prefix
  podrun logs deployment/web --all-pods --ignore-errors
  podrun logs web -c init-db --previous --tail 20
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "show the pods with these labels (`SELECTOR`: app=web,tier!=db); 10 lines of each unless --tail is given"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "show this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "all-containers", Usage: "show every container, init containers first"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep showing new output"},
			&cli.IntFlag{Name: "tail", Value: -1, Usage: "show only the last `LINES` so far (-1: all)"},
			&cli.DurationFlag{Name: "since", Usage: "show only what is not older than this `DURATION` (90s, 5m, 2h)"},
			&cli.StringFlag{Name: "since-time", Usage: "show only what was written from this `TIME` on (2026-01-02T15:04:05Z)"},
			&cli.Int64Flag{Name: "limit-bytes", Usage: "show at most this many `BYTES` of each container"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Usage: "put the time before every line"},
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Usage: "show the instance before the current one"},
			&cli.BoolFlag{Name: "prefix", Usage: "put the pod's and the container's name before every line"},
			&cli.BoolFlag{Name: "all-pods", Usage: "of a workload, such as deployment/web, show every pod instead of the newest; with --prefix"},
			&cli.BoolFlag{Name: "ignore-errors", Usage: "report what cannot be shown, and continue with the rest"},
			&cli.IntFlag{Name: "max-log-requests", Usage: "with -f: refuse to follow more than this `NUMBER` of containers at once (0: any number)"},
			&cli.DurationFlag{Name: "pod-running-timeout", Value: 20 * time.Second, Usage: "wait for this `DURATION` for the first pod of a workload"},
			&cli.BoolFlag{Name: "raw", Usage: "on a terminal: pass control sequences on"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// Run implements cmdutil.Command.
func (o *options) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	pods, err := o.pods(ctx)
	if err != nil {
		return err
	}
	out := podview.NewLogWriter(o.env.Out, o.env.Getenv, o.timestamps, o.raw)
	var all []*podLogs
	streams := 0
	for _, p := range pods {
		l, err := o.logsOf(p, out)
		if err = o.ignoreError(err); err != nil {
			return err
		}
		if l != nil {
			all, streams = append(all, l), streams+len(l.streams)
		}
	}
	if !o.follow {
		return o.ignoreError(o.printLogs(all))
	}
	if o.maxStreams > 0 && streams > o.maxStreams {
		return cmdutil.UsageErrorf("logs", "you are attempting to follow %d log streams, but maximum allowed concurrency is %d, use --max-log-requests to increase the limit", streams, o.maxStreams)
	}
	return o.ignoreError(cmdutil.WhileRead(ctx, o.env.Out, func(ctx context.Context) error { return followAll(ctx, all) }))
}

// ignoreError prints an error that the user wants to ignore.
func (o *options) ignoreError(err error) error {
	if err == nil || !o.ignoreErrors || exitcode.As(err) != nil {
		return err
	}
	report.Print(o.env.ErrOut, err)
	return nil
}

// podLogs are the selected containers of one pod.
type podLogs struct {
	pod     store.Pod
	plan    *pod.Plan
	streams []*logstream.Stream
}

func (o *options) logsOf(p store.Pod, out *podview.LogWriter) (*podLogs, error) {
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	sink := func(ct *pod.Container) crilog.Sink {
		s := out.Plain()
		if o.prefix {
			label := fmt.Sprintf("[pod/%s/%s]", p.Name, ct.Name)
			if name, ok := o.env.Compose.Labels[[2]string{p.Name, ct.Name}]; ok {
				label = name + " |"
			}
			s = out.Prefixed(out.Paint(label) + " ")
		}
		if o.limited {
			s = podview.Limited(s, o.limit, o.timestamps)
		}
		return s
	}
	l := &podLogs{pod: p, plan: plan}
	if o.allContainers {
		l.streams = logstream.New(plan, sink)
	} else {
		ct, err := podclient.ChooseContainer(o.env.ErrOut, p, plan, o.container)
		if err != nil {
			return nil, err
		}
		l.streams = []*logstream.Stream{logstream.NewOne(ct, logstream.IsInit(plan, ct.Name), sink(ct))}
	}
	for _, s := range l.streams {
		s.Tail, s.Since = o.tail, o.since
		s.Missed = logstream.MissedLines(o.env, p.Name, s.Container.Name)
	}
	return l, nil
}

// printLogs prints the existing logs. If several containers are selected, those that have not started are
// named on stderr; a single one is the error.
func (o *options) printLogs(pods []*podLogs) error {
	var errs []error
	for _, l := range pods {
		st, err := podview.StatusOf(l.pod)
		if err != nil {
			return err
		}
		for _, s := range l.streams {
			err := s.Print(l.pod, st, o.previous)
			if err == nil {
				continue
			}
			if len(pods) == 1 && len(l.streams) == 1 {
				return err
			}
			var waits *podview.NotWritten
			if !errors.As(err, &waits) {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintln(o.env.ErrOut, err)
		}
	}
	return errors.Join(errs...)
}

// followAll prints the existing and new output of several pods.
func followAll(ctx context.Context, pods []*podLogs) error {
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, l := range pods {
		all.Go(func() { errs[i] = logstream.FollowPod(ctx, l.pod, l.plan, l.streams) })
	}
	all.Wait()
	return errors.Join(errs...)
}
