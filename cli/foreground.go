package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/cli/internal/tty"
	"github.com/podrun/podrun/internal/crilog"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
)

// contextLines is how much of what a running pod has written is shown to somebody
// who joins it.
const contextLines = 10

// showing is what the foreground shows of pods, and what it ends with.
type showing struct {
	quiet    bool // nothing of what they write
	rule     exitFrom
	signaled *atomic.Bool // is set when a signal ends it
}

// foreground shows what pods write until they have ended. At the first signal it
// stops those that this command has started, at the second it stops them at once;
// then it removes them. Pods that ran before go on running.
func (f *front) foreground(ctx context.Context, keeper pods, running []*upPod, how showing, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, p := range running {
		switch {
		case p.change != nil:
			fmt.Fprintf(f.err, "podrun: pod %s was running already and has been changed; this shows its output, Ctrl-C leaves it running\n", p.place.Name)
		case p.awaits && p.running:
			fmt.Fprintf(f.err, "podrun: pod %s waits for its images already; this waits with it, Ctrl-C leaves it as it is\n", p.place.Name)
		case p.running:
			fmt.Fprintf(f.err, "podrun: pod %s is running already; this shows its output, Ctrl-C leaves it running\n", p.place.Name)
		}
	}
	errs, latest := make([]error, len(running)), slices.Clone(running)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		streams := make([][]*stream, len(running))
		if !how.quiet {
			streams = f.upStreams(running)
		}
		each(running, func(i int, p *upPod) {
			errs[i] = f.attendOne(ctx, p, streams[i])
			for next := p.renewal.take(); next != nil && ctx.Err() == nil; next = p.renewal.take() {
				var own []*stream
				if !how.quiet {
					own = f.upStreams(append(slices.Clone(running[:i]), next))[i]
				}
				errs[i] = f.attendOne(ctx, next, own)
				latest[i] = next
			}
		})
	}()
	sig := f.obey(ctx, cancel, running, signals, ended)
	<-ended
	if sig == nil {
		return how.rule.verdict(latest, errs)
	}
	how.signaled.Store(true)
	errs = nil
	for _, p := range running {
		if p.running {
			fmt.Fprintf(f.err, "podrun: pod %s goes on running; podrun down %s removes it\n", p.place.Name, p.place.Name)
			continue
		}
		errs = append(errs, f.clear(keeper, p.place))
	}
	return errors.Join(append(errs, interrupted(sig))...)
}

// obey waits for the end or the first signal. After that one it sees to it that
// pods are stopped, and returns it.
func (f *front) obey(ctx context.Context, leave func(), running []*upPod, signals <-chan os.Signal, ended <-chan struct{}) os.Signal {
	var first os.Signal
	select {
	case <-ended:
		return nil
	case first = <-signals:
	}
	var own []*upPod
	for _, p := range running {
		if !p.running {
			own = append(own, p)
		}
	}
	if len(own) == 0 {
		f.afterCtrlC()
		leave()
		return first
	}
	f.afterCtrlC()
	for _, p := range own {
		fmt.Fprintf(f.err, "podrun: stopping pod %s, for up to %d s; Ctrl-C again stops it at once\n", p.place.Name, p.plan.GraceSeconds)
	}
	f.stopAll(ctx, own, nil)
	go func() {
		select {
		case <-ended:
		case <-signals:
			f.afterCtrlC()
			fmt.Fprintln(f.err, "podrun: stopping at once")
			f.stopAll(ctx, own, new(int64))
		}
	}()
	for _, p := range running {
		if p.running { // it does not end with the others
			go func() { waitAllGone(ctx, own); leave() }()
			break
		}
	}
	return first
}

// afterCtrlC ends the line on which a terminal has just shown ^C.
func (f *front) afterCtrlC() {
	if _, terminal := tty.File(f.err); terminal {
		fmt.Fprintln(f.err)
	}
}

// stopAll asks for the end of pods, without waiting for it. The watchers see it.
func (f *front) stopAll(ctx context.Context, pods []*upPod, grace *int64) {
	for _, p := range pods {
		follows := p.renewal.close()
		go func() {
			err := stop(ctx, p.place, grace)
			if follows != nil { // another pod may be there then
				<-follows
				err = errors.Join(err, stop(ctx, p.place, grace))
			}
			if err != nil && ctx.Err() == nil {
				report.Print(f.err, fmt.Errorf("cannot stop pod %s: %w", p.place.Name, err))
			}
		}()
	}
}

func waitAllGone(ctx context.Context, pods []*upPod) {
	for _, p := range pods {
		for p.place.Alive() && remote.Pause(ctx, remote.PollTime) == nil {
		}
	}
}

// clear removes a pod that has ended.
func (f *front) clear(keeper pods, p store.Pod) error {
	lock, err := remote.LockWithin(context.Background(), p, remote.GoneTime)
	if err == nil {
		defer lock.Close()
		err = keeper.remove(p)
	}
	if err != nil {
		return report.New(report.Failure, "podrun down "+p.Name+" tries it again", "cannot remove pod %s: %w", p.Name, err)
	}
	return nil
}

// attendOne is attend of a pod whose place another may take meanwhile.
func (f *front) attendOne(ctx context.Context, p *upPod, streams []*stream) error {
	ctx, leave := p.renewal.show(ctx)
	defer leave()
	return f.attend(ctx, p, streams)
}

// attend shows what one pod writes and what happens to it, to its end, which is an
// error unless it succeeded.
func (f *front) attend(ctx context.Context, p *upPod, streams []*stream) error {
	ended := make(chan struct{})
	tell := narrator{out: f.err, pod: p.place.Name}
	if p.awaits {
		if err := f.awaitImages(ctx, p, workloads.ControllerOf(p.object.Pod) != nil); err != nil {
			if ctx.Err() != nil {
				return nil // left alone
			}
			if !p.running { // nobody else waits for it; what it had before stays
				err = errors.Join(err, remote.Stop(ctx, p.place, wire.StopRequest{Remove: p.past == nil, Shutdown: p.past != nil}))
			}
			return err
		}
	}
	defer tell.mounts(p)()
	var last *pod.Status
	var watchErr error
	go func() {
		defer close(ended)
		watchErr = watch(ctx, p.place, func(st *pod.Status) bool {
			tell.status(st)
			note(streams, p.plan.RestartPolicy, st)
			last = st
			return p.renewal != nil && st.Phase.Terminal() // then another may be there
		})
		if p.renewal == nil && watchErr == nil || errors.Is(watchErr, remote.ErrNotRunning) {
			watchErr = remote.WaitGone(ctx, p.place)
		}
	}()
	if err := follow(ctx, p.place, streams, ended); err != nil && ctx.Err() == nil {
		return report.New(report.Failure, fmt.Sprintf("podrun logs -f %s shows it again, podrun down %s removes the pod", p.place.Name, p.place.Name),
			"cannot show the output of pod %s, which goes on running: %w", p.place.Name, err)
	}
	<-ended
	if ctx.Err() != nil {
		return nil // left alone
	}
	if watchErr != nil {
		return watchErr
	}
	if last == nil || !last.Phase.Terminal() { // it ended before we could see it, or was killed
		st, err := reading.StatusOf(p.place)
		if err != nil {
			return err
		}
		tell.status(st)
		last = st
	}
	p.last = last
	return tell.failure(p.place, last)
}

// upStreams are the output of all containers of all pods, each with its prefix. In
// a pipe a container that is alone needs none.
func (f *front) upStreams(running []*upPod) [][]*stream {
	view := reading.NewLogView(f.out, f.getenv, false, false)
	colour := tty.Colour(f.out, f.getenv)
	count, width := 0, 0
	label := func(p *upPod, c *pod.Container) string {
		if len(running) > 1 {
			return p.place.Name + "/" + c.Name
		}
		return c.Name
	}
	for _, p := range running {
		for _, list := range [][]pod.Container{p.plan.InitContainers, p.plan.Containers} {
			for i := range list {
				count++
				width = max(width, len(label(p, &list[i])))
			}
		}
	}
	n := 0
	all := make([][]*stream, len(running))
	for i, p := range running {
		all[i] = allStreams(p.plan, func(c *pod.Container) crilog.Sink {
			defer func() { n++ }()
			switch {
			case colour:
				return view.Prefixed(fmt.Sprintf("%s%-*s |%s ", tty.Nth(n), width, label(p, c), tty.Reset))
			case view.Terminal:
				return view.Prefixed(fmt.Sprintf("%-*s | ", width, label(p, c)))
			case count > 1:
				return view.Prefixed(label(p, c) + " | ")
			}
			return view.Plain()
		})
		for _, s := range all[i] {
			s.missed = f.missed(p.place.Name, s.container.Name)
		}
		if p.running || p.past != nil {
			for _, s := range all[i] {
				s.tail = contextLines
			}
			fromLatest(p.place, all[i])
		}
	}
	return all
}
