package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func (f *front) logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "show what a container has written",
		ArgsUsage: "POD",
		Description: `Shows the output of the current or last instance of a container. With -f it
waits for a container that has not started, goes on over its restarts, and ends
when it will write no more.

Examples:
  podrun logs web
  podrun logs -f web -c frontend
  podrun logs web --all-containers --prefix
  podrun logs web -c init-db --previous --tail 20
`,
		Flags: []cli.Flag{
			namespaceFlag(),
			&cli.StringFlag{Name: "container", Aliases: []string{"c"}, Usage: "show this `CONTAINER` instead of the first"},
			&cli.BoolFlag{Name: "all-containers", Usage: "show every container, init containers first"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on showing what is written"},
			&cli.IntFlag{Name: "tail", Value: -1, Usage: "show only the last `LINES` of what is there (-1: all)"},
			&cli.BoolFlag{Name: "timestamps", Usage: "put the time before every line"},
			&cli.BoolFlag{Name: "previous", Aliases: []string{"p"}, Usage: "show the instance before the current one"},
			&cli.BoolFlag{Name: "prefix", Usage: "put the pod's and the container's name before every line"},
		},
		Action: f.logs,
	}
}

func (f *front) logs(c *cli.Context) error {
	switch {
	case c.NArg() != 1:
		return usageErrorf("logs", "logs takes the name of one pod")
	case c.Bool("all-containers") && c.String("container") != "":
		return usageErrorf("logs", "--all-containers and --container exclude each other")
	case c.Bool("previous") && c.Bool("follow"):
		return usageErrorf("logs", "--previous and --follow exclude each other: an earlier instance writes nothing more")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	p, err := existing(dirs, c.String("namespace"), c.Args().First())
	if err != nil {
		return err
	}
	plan, err := p.Plan()
	if err != nil {
		return err
	}
	streams, err := f.logStreams(c, p, plan)
	if err != nil {
		return err
	}
	if c.Bool("follow") {
		return f.followLogs(c.Context, p, plan, streams)
	}
	return f.printLogs(p, streams, c.Bool("previous"))
}

// logStreams are the containers the user asked for.
func (f *front) logStreams(c *cli.Context, p store.Pod, plan *pod.Plan) ([]*stream, error) {
	view := f.newLogView(c.Bool("timestamps"))
	sink := func(ct *pod.Container) crilog.Sink {
		if c.Bool("prefix") {
			return view.prefixed(fmt.Sprintf("[pod/%s/%s] ", p.Name, ct.Name))
		}
		return view.plain()
	}
	if c.Bool("all-containers") {
		streams := allStreams(plan, sink)
		for _, s := range streams {
			s.tail = c.Int("tail")
		}
		return streams, nil
	}
	ct, err := f.choose(p, plan, c.String("container"))
	if err != nil {
		return nil, err
	}
	s := newStream(ct, isInit(plan, ct.Name), sink(ct))
	s.tail = c.Int("tail")
	return []*stream{s}, nil
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

// printLogs shows what is there. Of several containers those that have not started
// are named on stderr; of one it is the error.
func (f *front) printLogs(p store.Pod, streams []*stream, previous bool) error {
	st, err := statusOf(p)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range streams {
		attempt, err := instance(p, s.container.Name, st, previous)
		if err == nil {
			err = crilog.Read(p.LogDir(s.container.Name), attempt, crilog.Selection{Tail: s.tail}, s.sink)
			err = errors.Join(err, finish(s.sink))
		}
		if err == nil {
			continue
		}
		if len(streams) == 1 {
			return err
		}
		var waits *notWritten
		if !errors.As(err, &waits) {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintln(f.err, err)
	}
	return errors.Join(errs...)
}

// notWritten says that a container has no such log (yet).
type notWritten struct{ what string }

func (e *notWritten) Error() string { return e.what }

// instance is the attempt whose log is meant.
func instance(p store.Pod, container string, st *pod.Status, previous bool) (int, error) {
	all, err := crilog.Instances(p.LogDir(container))
	if err != nil {
		return 0, err
	}
	c, _ := st.Container(container)
	if !previous {
		if len(all) > 0 {
			return all[len(all)-1], nil
		}
		return 0, report.New(report.Failure, "podrun logs -f waits for it", "%w",
			&notWritten{fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, p.Name, waitingReason(c))})
	}
	// While it waits for its next start, the instance before that one is the newest.
	if c != nil && c.State.Waiting == nil && len(all) > 0 {
		all = all[:len(all)-1]
	}
	if len(all) == 0 || c == nil || c.RestartCount == 0 && c.LastState.Terminated == nil {
		return 0, &notWritten{fmt.Sprintf("previous terminated container %q in pod %q not found", container, p.Name)}
	}
	return all[len(all)-1], nil
}

func waitingReason(c *pod.ContainerStatus) string {
	if c != nil && c.State.Waiting != nil && c.State.Waiting.Reason != "" {
		return c.State.Waiting.Reason
	}
	return "ContainerCreating"
}

// followLogs shows what is there and what comes.
func (f *front) followLogs(ctx context.Context, p store.Pod, plan *pod.Plan, streams []*stream) error {
	fromLatest(p, streams)
	ended := make(chan struct{})
	var watchErr error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(ended)
		watchErr = watch(ctx, p, func(st *pod.Status) bool {
			note(streams, plan.RestartPolicy, st)
			return allOver(streams)
		})
		if watchErr == nil && !allOver(streams) {
			watchErr = waitGone(ctx, p)
		}
	}()
	err := follow(ctx, p, streams, ended)
	cancel()
	<-ended
	if errors.Is(watchErr, errNotRunning) || errors.Is(watchErr, context.Canceled) {
		watchErr = nil
	}
	return errors.Join(err, watchErr)
}

func allOver(streams []*stream) bool {
	return !slices.ContainsFunc(streams, func(s *stream) bool {
		select {
		case <-s.done:
			return false
		default:
			return true
		}
	})
}

// fromLatest lets streams begin with the instances of now.
func fromLatest(p store.Pod, streams []*stream) {
	for _, s := range streams {
		// A directory that cannot be listed is the follower's to complain of.
		if all, err := crilog.Instances(p.LogDir(s.container.Name)); err == nil && len(all) > 0 {
			s.first = all[len(all)-1]
		}
	}
}
