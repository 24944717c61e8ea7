package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func (f *front) logsCommand() *cli.Command {
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
			namespaceFlag(),
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
		Action: f.logs,
	}
}

func (f *front) logs(c *cli.Context) error {
	want, err := logWishes(c)
	if err != nil {
		return err
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	pods, err := f.logPods(c, dirs)
	if err != nil {
		return err
	}
	view := reading.NewLogView(f.out, f.getenv, want.timestamps, c.Bool("raw"))
	var all []*podLogs
	for _, p := range pods {
		l, err := f.logsOf(p, want, view)
		if err = f.pass(want, err); err != nil {
			return err
		}
		if l != nil {
			all = append(all, l)
		}
	}
	if !c.Bool("follow") {
		return f.pass(want, f.printLogs(all, want.previous))
	}
	if n := streamsOf(all); want.most > 0 && n > want.most {
		return usageErrorf("logs", "you are attempting to follow %d log streams, but maximum allowed concurrency is %d, use --max-log-requests to increase the limit", n, want.most)
	}
	return f.pass(want, whileRead(c.Context, f.out, func(ctx context.Context) error { return f.followAll(ctx, all) }))
}

// pass says an error that the user wants to be ignored.
func (f *front) pass(want wishes, err error) error {
	if err == nil || !want.ignore || asExit(err) != nil {
		return err
	}
	report.Print(f.err, err)
	return nil
}

func streamsOf(all []*podLogs) (n int) {
	for _, l := range all {
		n += len(l.streams)
	}
	return n
}

// podLogs are the containers of one pod that the user asked for.
type podLogs struct {
	place   store.Pod
	plan    *pod.Plan
	streams []*stream
}

func (f *front) logsOf(p store.Pod, want wishes, view *reading.LogView) (*podLogs, error) {
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
			s = reading.Limited(s, want.limit, want.timestamps)
		}
		return s
	}
	l := &podLogs{place: p, plan: plan}
	if want.all {
		l.streams = allStreams(plan, sink)
	} else {
		ct, err := f.choose(p, plan, want.container)
		if err != nil {
			return nil, err
		}
		l.streams = []*stream{newStream(ct, isInit(plan, ct.Name), sink(ct))}
	}
	for _, s := range l.streams {
		s.tail, s.since = want.tail, want.since
		s.missed = f.missed(p.Name, s.container.Name)
	}
	return l, nil
}

func allStreams(plan *pod.Plan, sink func(*pod.Container) crilog.Sink) []*stream {
	var streams []*stream
	for i := range plan.InitContainers {
		streams = append(streams, newStream(&plan.InitContainers[i], true, sink(&plan.InitContainers[i])))
	}
	for i := range plan.Containers {
		streams = append(streams, newStream(&plan.Containers[i], false, sink(&plan.Containers[i])))
	}
	return streams
}
