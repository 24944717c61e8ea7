package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/logstream"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/wire"
)

// foregroundHooks are the hooks of up in a terminal, which prints the pods' output until they have ended.
type foregroundHooks struct {
	commandHooks
	*upOptions
	signals  <-chan os.Signal
	signaled atomic.Bool // a signal has ended the foreground
	early    *followers  // of a run in which pods wait for others: they show what runs meanwhile
}

// Prepared begins to follow the pods before they start, if some of them wait for others.
func (f *foregroundHooks) Prepared() error {
	if f.run.StartsInOrder() && !f.watch {
		f.early = f.beginFollowing(context.Background(), f.run.Targets)
	}
	return nil
}

// AfterStart prints the output of the pods and of the workloads' pods. This process becomes the controller
// of the workloads that have none.
func (f *foregroundHooks) AfterStart(ctx context.Context, startErr error) error {
	f.preparation.RestoreGC()
	if f.watch && len(f.run.Targets)+len(f.run.Workloads) > 0 {
		end, err := f.watchFiles(ctx)
		if err != nil {
			return errors.Join(startErr, err)
		}
		defer end()
	}
	locked, locks, err := f.lockWorkloads()
	defer func() {
		for _, lock := range locks {
			lock.Close()
		}
	}()
	if err != nil {
		return errors.Join(startErr, err)
	}
	podErr, err := waitForBoth(ctx, f.run, f.signals, func(signals <-chan os.Signal) error {
		return f.followPods(ctx, startErr, signals)
	}, func(signals <-chan os.Signal) error {
		return f.followWorkloads(ctx, locked, signals)
	})
	return errors.Join(startErr, err, podErr)
}

// CleanUp removes the objects that the command has created, if a signal has ended it.
func (f *foregroundHooks) CleanUp(ctx context.Context, err error) error {
	if f.signaled.Load() {
		err = errors.Join(err, f.run.DeleteCreated(ctx))
	}
	return f.commandHooks.CleanUp(ctx, err)
}

// followPods prints the output of the pods until they have ended. At the first signal it stops the pods
// that this command has started, and at a second one it kills them; then it removes them. Pods that ran
// before keep running. If a pod was not started because another has failed, it leaves all pods running, as docker
// compose does.
func (f *foregroundHooks) followPods(ctx context.Context, startErr error, signals <-chan os.Signal) error {
	env, running := f.env, f.run.Started()
	following := f.early
	if following == nil {
		following = f.beginFollowing(ctx, running)
	}
	defer following.leave()
	if isDependencyFailure(startErr) && len(f.run.Workloads) == 0 {
		following.leave()
		<-following.ended
		for _, p := range running {
			reportNotRemoved(env, p)
		}
		return nil
	}
	for _, p := range running {
		switch {
		case p.Action == upplan.Change:
			fmt.Fprintf(env.ErrOut, "podrun: pod %s was already running and has been changed; podrun shows its output, Ctrl-C leaves it running\n", p.Pod.Name)
		case p.AwaitsImages && p.RanBefore():
			fmt.Fprintf(env.ErrOut, "podrun: pod %s is already waiting for its images; podrun waits too, Ctrl-C leaves the pod unchanged\n", p.Pod.Name)
		case p.RanBefore():
			fmt.Fprintf(env.ErrOut, "podrun: pod %s is already running; podrun shows its output, Ctrl-C leaves it running\n", p.Pod.Name)
		}
	}
	sig := handleSignals(following.ctx, env, following.leave, running, signals, following.ended)
	<-following.ended
	if sig == nil {
		return f.exitRule.Result(following.results())
	}
	f.signaled.Store(true)
	var errs []error
	for _, p := range running {
		if p.RanBefore() {
			reportNotRemoved(env, p)
			continue
		}
		if err := podclient.Remove(context.Background(), p.Pod, f.run.Launcher.Remove); err != nil {
			errs = append(errs, report.New(report.Failure, "podrun down "+p.Pod.Name+" tries again", "%w", err))
		}
	}
	return errors.Join(append(errs, exitcode.Interrupted(sig))...)
}

// reportNotRemoved prints that this command leaves a pod as it is, running or ended, and which command removes the pod.
func reportNotRemoved(env *cmdutil.Env, p *podup.Target) {
	state := "keeps running"
	if st, err := podview.StatusOf(p.Pod); err == nil && st.Phase.Terminal() {
		state = "has ended"
	}
	fmt.Fprintf(env.ErrOut, "podrun: pod %s %s; podrun down %s removes it\n", p.Pod.Name, state, p.Pod.Name)
}

// isDependencyFailure reports whether a pod was not started because another one has failed.
func isDependencyFailure(startErr error) bool {
	var failed *podup.DependencyError
	return errors.As(startErr, &failed) && !errors.Is(startErr, podup.ErrInterrupted)
}

// followers print the output of pods, one each.
type followers struct {
	ctx    context.Context
	leave  context.CancelFunc // ends all followers
	latest []*podup.Target    // --watch may have replaced a pod
	errs   []error            // how each pod has ended
	ended  chan struct{}      // closed when all followers have ended
}

// beginFollowing prints the output of each pod, from its start to its end.
func (f *foregroundHooks) beginFollowing(ctx context.Context, pods []*podup.Target) *followers {
	l := &followers{latest: slices.Clone(pods), errs: make([]error, len(pods)), ended: make(chan struct{})}
	l.ctx, l.leave = context.WithCancel(ctx)
	go func() {
		defer close(l.ended)
		streams := f.allStreams(pods)
		podup.ForEach(pods, func(i int, p *podup.Target) {
			if <-p.Settled(); !p.Started {
				return
			}
			l.errs[i] = followUntilReplaced(l.ctx, f.env, p, streams[i])
			for next := p.Successor.Take(); next != nil && l.ctx.Err() == nil; next = p.Successor.Take() {
				nextStreams := f.allStreams(append(slices.Clone(pods[:i]), next))[i]
				l.errs[i] = followUntilReplaced(l.ctx, f.env, next, nextStreams)
				l.latest[i] = next
			}
		})
	}()
	return l
}

// results returns the pods that were started, and how each has ended.
func (l *followers) results() (pods []*podup.Target, errs []error) {
	for i, p := range l.latest {
		if p.Started {
			pods, errs = append(pods, p), append(errs, l.errs[i])
		}
	}
	return pods, errs
}

// handleSignals waits until the pods have ended, or for the first signal. After a signal it stops the pods
// that this command has started, and returns the signal.
func handleSignals(ctx context.Context, env *cmdutil.Env, leave func(), running []*podup.Target, signals <-chan os.Signal, ended <-chan struct{}) os.Signal {
	var first os.Signal
	select {
	case <-ended:
		return nil
	case first = <-signals:
	}
	var foreground []*podup.Target
	for _, p := range running {
		if !p.RanBefore() {
			foreground = append(foreground, p)
		}
	}
	if len(foreground) == 0 {
		env.EndInterruptLine()
		leave()
		return first
	}
	env.EndInterruptLine()
	for _, p := range foreground {
		fmt.Fprintf(env.ErrOut, "podrun: stopping pod %s, for up to %d s; Ctrl-C again stops it at once\n", p.Pod.Name, p.Plan.GraceSeconds)
	}
	stopAll(ctx, env, foreground, nil)
	for _, p := range foreground {
		end := podclient.ReportWaiting(env.ErrOut, "stopping", p.Pod, nil, nil)
		go func() { <-ended; end() }()
	}
	go func() {
		select {
		case <-ended:
		case <-signals:
			env.EndInterruptLine()
			fmt.Fprintln(env.ErrOut, "podrun: stopping at once")
			stopAll(ctx, env, foreground, new(int64))
		}
	}()
	for _, p := range running {
		if p.RanBefore() { // it ran before this command
			go func() { waitAllGone(ctx, foreground); leave() }()
			break
		}
	}
	return first
}

// stopAll requests the stop of pods, without waiting. The watchers notice their end.
func stopAll(ctx context.Context, env *cmdutil.Env, pods []*podup.Target, grace *int64) {
	for _, p := range pods {
		follows := p.Successor.Close()
		go func() {
			err := podclient.RequestStop(ctx, p.Pod, wire.StopRequest{GraceSeconds: grace})
			if follows != nil { // another pod of that name may exist then
				<-follows
				err = errors.Join(err, podclient.RequestStop(ctx, p.Pod, wire.StopRequest{GraceSeconds: grace}))
			}
			if err != nil && ctx.Err() == nil {
				report.Print(env.ErrOut, fmt.Errorf("cannot stop pod %s: %w", p.Pod.Name, err))
			}
		}()
	}
}

func waitAllGone(ctx context.Context, pods []*podup.Target) {
	for _, p := range pods {
		for p.Pod.Alive() && sleep.For(ctx, podclient.PollTime) == nil {
		}
	}
}

// followUntilReplaced follows a pod until it ends or --watch replaces it.
func followUntilReplaced(ctx context.Context, env *cmdutil.Env, p *podup.Target, streams []*logstream.Stream) error {
	ctx, leave := p.Successor.Show(ctx)
	defer leave()
	return followPod(ctx, env, p, streams)
}

// followPod prints one pod's output and state changes until it ends. It returns an error unless the pod
// succeeded.
func followPod(ctx context.Context, env *cmdutil.Env, p *podup.Target, streams []*logstream.Stream) error {
	ended := make(chan struct{})
	reporter := follow.Reporter{Out: env.ErrOut, Pod: p.Pod.Name}
	if p.AwaitsImages {
		controlled := workloads.ControllerOf(p.Object.Pod) != nil
		if err := follow.AwaitImages(ctx, env, p, func(a *pod.ImagePull) bool { return !controlled && !a.Retryable }); err != nil {
			if ctx.Err() != nil {
				return nil // the foreground no longer follows this pod
			}
			if !p.RanBefore() { // only this command waits for it; a pod that ran before keeps its record
				err = errors.Join(err, podclient.RequestStop(ctx, p.Pod, wire.StopRequest{Remove: p.Resumed == nil, Shutdown: p.Resumed != nil}))
			}
			return err
		}
	}
	defer reporter.WatchMounts(p)()
	var last *pod.Status
	var watchErr error
	go func() {
		defer close(ended)
		last, watchErr = podclient.Follow(ctx, p.Pod, func(st *pod.Status) bool {
			reporter.Status(st)
			logstream.EndFinished(streams, p.Plan.RestartPolicy, st)
			return p.Successor != nil && st.Phase.Terminal() // a replacement may exist
		})
	}()
	if err := logstream.Follow(ctx, p.Pod, streams, ended); err != nil && ctx.Err() == nil {
		return report.New(report.Failure, fmt.Sprintf("podrun logs -f %s shows it again, podrun down %s removes the pod", p.Pod.Name, p.Pod.Name),
			"cannot show the output of pod %s, which keeps running: %w", p.Pod.Name, err)
	}
	<-ended
	if ctx.Err() != nil {
		return nil // the foreground no longer follows this pod
	}
	if watchErr != nil {
		return watchErr
	}
	p.Last = last
	return reporter.Failure(p.Pod, last)
}

// allStreams returns the output streams of all containers of all pods, with their prefixes. In a pipe, a
// single container has no prefix, except with podrun compose.
func (f *foregroundHooks) allStreams(pods []*podup.Target) [][]*logstream.Stream {
	view := podview.NewLogWriter(f.env.Out, f.env.Getenv, false, false)
	colour := tty.Colour(f.env.Out, f.env.Getenv)
	count, width := 0, 0
	label := func(p *podup.Target, c *pod.Container) string {
		switch name, ok := f.env.Compose.Labels[[2]string{p.Pod.Name, c.Name}]; {
		case ok:
			return name
		case len(pods) > 1:
			return p.Pod.Name + "/" + c.Name
		}
		return c.Name
	}
	for _, p := range pods {
		for _, list := range [][]pod.Container{p.Plan.InitContainers, p.Plan.Containers} {
			for i := range list {
				count++
				width = max(width, len(label(p, &list[i])))
			}
		}
	}
	n := 0
	all := make([][]*logstream.Stream, len(pods))
	for i, p := range pods {
		all[i] = f.streams(p, func(c *pod.Container) crilog.Sink {
			defer func() { n++ }()
			switch {
			case colour:
				return view.Prefixed(fmt.Sprintf("%s%-*s |%s ", tty.Nth(n), width, label(p, c), tty.Reset))
			case view.Terminal:
				return view.Prefixed(fmt.Sprintf("%-*s | ", width, label(p, c)))
			case count > 1, f.env.Compose.Labels != nil:
				return view.Prefixed(label(p, c) + " | ")
			}
			return view.Plain()
		})
	}
	return all
}

// streams returns the output streams of a pod's containers, or none with --quiet. The streams of a pod that
// ran before the command begin with its last lines.
func (f *foregroundHooks) streams(p *podup.Target, sink func(*pod.Container) crilog.Sink) []*logstream.Stream {
	if f.quiet {
		return nil
	}
	streams := logstream.New(p.Plan, sink)
	before := p.RanBefore() || p.Resumed != nil
	for _, s := range streams {
		s.Missed = logstream.MissedLines(f.env, p.Pod.Name, s.Container.Name)
		if before {
			s.Tail = podview.ContextLines
		}
	}
	if before {
		logstream.FromLatest(p.Pod, streams)
	}
	return streams
}
