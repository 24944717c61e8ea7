// Package logs has the command logs.
package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/exitcode"
	"github.com/podrun/podrun/cli/internal/logstream"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// NewCommand returns the command logs.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what a container has written",
		ArgsUsage: "POD... | -l SELECTOR",
		Description: `Shows the output of the current or last instance of a container. With -f it
waits for a container that has not started, goes on over its restarts and the
rotation of its log, and ends when it will write no more.

On a terminal, what a container writes can colour its lines and nothing else;
--raw lets it do what it likes. In a pipe it is what was written, byte for byte.

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
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "show the pods with these labels (`SELECTOR`: app=web,tier!=db); 10 lines of each unless --tail says more"},
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "show this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "all-containers", Usage: "show every container, init containers first"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on showing what is written"},
			&cli.IntFlag{Name: "tail", Value: -1, Usage: "show only the last `LINES` of what is there (-1: all)"},
			&cli.DurationFlag{Name: "since", Usage: "show only what is not older than this `DURATION` (90s, 5m, 2h)"},
			&cli.StringFlag{Name: "since-time", Usage: "show only what was written from this `TIME` on (2026-01-02T15:04:05Z)"},
			&cli.Int64Flag{Name: "limit-bytes", Usage: "show at most this many `BYTES` of each container"},
			&cli.BoolFlag{Name: "timestamps", Aliases: []string{"t"}, Usage: "put the time before every line"},
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Usage: "show the instance before the current one"},
			&cli.BoolFlag{Name: "prefix", Usage: "put the pod's and the container's name before every line"},
			&cli.BoolFlag{Name: "all-pods", Usage: "of a workload, such as deployment/web, show every pod instead of the newest; with --prefix"},
			&cli.BoolFlag{Name: "ignore-errors", Usage: "say what cannot be shown, and go on with the rest"},
			&cli.IntFlag{Name: "max-log-requests", Usage: "with -f: refuse to follow more than this `NUMBER` of containers at once (0: any number)"},
			&cli.DurationFlag{Name: "pod-running-timeout", Value: 20 * time.Second, Usage: "wait for this `DURATION` for the first pod of a workload"},
			&cli.BoolFlag{Name: "raw", Usage: "on a terminal: let containers send it what they like"},
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

func run(env *cmdutil.Env, c *cli.Context) error {
	want, err := parseOptions(c)
	if err != nil {
		return err
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	pods, err := logPods(env, c, dirs)
	if err != nil {
		return err
	}
	view := podview.NewLogWriter(env.Out, env.Getenv, want.timestamps, c.Bool("raw"))
	var all []*podLogs
	for _, p := range pods {
		l, err := logsOf(env, p, want, view)
		if err = ignoreError(env, want, err); err != nil {
			return err
		}
		if l != nil {
			all = append(all, l)
		}
	}
	if !c.Bool("follow") {
		return ignoreError(env, want, printLogs(env, all, want.previous))
	}
	if n := streamsOf(all); want.most > 0 && n > want.most {
		return cmdutil.UsageErrorf("logs", "you are attempting to follow %d log streams, but maximum allowed concurrency is %d, use --max-log-requests to increase the limit", n, want.most)
	}
	return ignoreError(env, want, cmdutil.WhileRead(c.Context, env.Out, func(ctx context.Context) error { return followAll(ctx, env, all) }))
}

// ignoreError prints an error that the user wants to ignore.
func ignoreError(env *cmdutil.Env, want options, err error) error {
	if err == nil || !want.ignore || exitcode.As(err) != nil {
		return err
	}
	report.Print(env.ErrOut, err)
	return nil
}

func streamsOf(all []*podLogs) (n int) {
	for _, l := range all {
		n += len(l.streams)
	}
	return n
}

// podLogs are the selected containers of one pod.
type podLogs struct {
	place   store.Pod
	plan    *pod.Plan
	streams []*logstream.Stream
}

func logsOf(env *cmdutil.Env, p store.Pod, want options, view *podview.LogWriter) (*podLogs, error) {
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	sink := func(ct *pod.Container) crilog.Sink {
		s := view.Plain()
		if want.prefix {
			s = view.Prefixed(view.Paint(fmt.Sprintf("[pod/%s/%s]", p.Name, ct.Name)) + " ")
		}
		if want.limit > 0 {
			s = podview.Limited(s, want.limit, want.timestamps)
		}
		return s
	}
	l := &podLogs{place: p, plan: plan}
	if want.all {
		l.streams = logstream.New(plan, sink)
	} else {
		ct, err := resource.ChooseContainer(env, p, plan, want.container)
		if err != nil {
			return nil, err
		}
		l.streams = []*logstream.Stream{logstream.NewOne(ct, logstream.IsInit(plan, ct.Name), sink(ct))}
	}
	for _, s := range l.streams {
		s.Tail, s.Since = want.tail, want.since
		s.Missed = logstream.MissedLines(env, p.Name, s.Container.Name)
	}
	return l, nil
}

// printLogs prints the existing logs. If several containers are selected, those that have not started are
// named on stderr; a single one is the error.
func printLogs(env *cmdutil.Env, pods []*podLogs, previous bool) error {
	var errs []error
	for _, l := range pods {
		st, err := podview.StatusOf(l.place)
		if err != nil {
			return err
		}
		for _, s := range l.streams {
			attempt, err := podview.Instance(l.place, s.Container.Name, st, previous)
			if err == nil {
				err = crilog.Read(l.place.LogDir(s.Container.Name), attempt, s.Selection(), s.Sink)
				err = errors.Join(err, podview.Finish(s.Sink))
			}
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
			fmt.Fprintln(env.ErrOut, err)
		}
	}
	return errors.Join(errs...)
}

// followAll prints the existing and new output of several pods.
func followAll(ctx context.Context, env *cmdutil.Env, pods []*podLogs) error {
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, l := range pods {
		all.Go(func() { errs[i] = followLogs(ctx, env, l.place, l.plan, l.streams) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// followLogs prints the existing and new output of one pod.
func followLogs(ctx context.Context, env *cmdutil.Env, p store.Pod, plan *pod.Plan, streams []*logstream.Stream) error {
	logstream.FromLatest(p, streams)
	ended := make(chan struct{})
	var watchErr error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(ended)
		watchErr = podclient.WatchStatus(ctx, p, func(st *pod.Status) bool {
			logstream.EndFinished(streams, plan.RestartPolicy, st)
			return logstream.AllDone(streams)
		})
		if watchErr == nil && !logstream.AllDone(streams) {
			watchErr = podclient.WaitGone(ctx, p)
		}
	}()
	err := logstream.Follow(ctx, p, streams, ended)
	cancel()
	<-ended
	if errors.Is(watchErr, podclient.ErrNotRunning) || errors.Is(watchErr, context.Canceled) {
		watchErr = nil
	}
	return errors.Join(err, watchErr)
}
