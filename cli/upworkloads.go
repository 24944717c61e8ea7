package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// employ takes workloads into the launch, and a pod of each, for what all its pods need.
func (l *launch) employ(objects []manifest.Object) error {
	var errs []error
	for i := range objects {
		o := &objects[i]
		if z := o.TimeZone(); z != "" {
			if _, err := time.LoadLocation(z); err != nil {
				errs = append(errs, report.New(report.Usage, "", "%s is not a manifest that podrun can run\n%w", o.File, o.UnknownTimeZone()))
			}
		}
		o.Stored.RequireLimits, o.Stored.TLSVerify = l.requireLimits, l.pull.TLSVerify
		if old, err := l.dirs.Object(o.Stored.Kind, o.Stored.Namespace, o.Stored.Name); err == nil && old.Deleting {
			errs = append(errs, report.New(report.Failure, "try again when it is gone", "%s is being removed", nameOf(old)))
		}
		if _, err := l.front.compared(l.dirs, o); err != nil {
			errs = append(errs, err)
		}
		l.samples = append(l.samples, &upPod{object: workloads.SamplePod(o)})
	}
	l.workloads = objects
	if len(objects) > 0 && l.logLimited {
		errs = append(errs, report.New(report.Usage, "set podrun.dev/log-max-size and podrun.dev/log-max-files in the template's annotations", "--log-max-size and --log-max-files are for Pods: %s is a %s", where(&objects[0]), objects[0].Kind))
	}
	return errors.Join(errs...)
}

// workplaces are the places of the launch's workloads.
func (l *launch) workplaces() []store.Workload {
	var list []store.Workload
	for i := range l.workloads {
		o := l.workloads[i].Stored
		if w, err := l.dirs.Workload(o.Kind, o.Namespace, o.Name); err == nil { // it was kept there
			list = append(list, w)
		}
	}
	return list
}

// upWorkloads goes on with `podrun up` of workloads, and of pods beside them.
func (f *front) upWorkloads(c *cli.Context, l *launch, rule exitFrom, failed error, signals <-chan os.Signal) error {
	if !c.Bool("detach") {
		how := showing{c.Bool("quiet"), rule, &atomic.Bool{}}
		err := f.foregroundAll(c.Context, l, how, signals)
		return errors.Join(failed, err, l.undo(c.Context, how))
	}
	errs := []error{failed}
	places := l.workplaces()
	for _, w := range places {
		errs = append(errs, f.control(l.dirs, w))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	podErr := make(chan error, 1)
	mine, theirs := tee(c.Context, signals)
	go func() {
		if len(l.pods) == 0 {
			podErr <- nil
			return
		}
		podErr <- f.detach(c.Context, l.started(), arrivalOf(c.Bool("wait")), c.Duration("timeout"), theirs)
	}()
	err := interruptible(c.Context, mine, func(ctx context.Context) error {
		if d := c.Duration("timeout"); d > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		}
		return f.awaitWorkloads(ctx, l.dirs, places, patience{c.Bool("wait"), c.Bool("fail-fast")})
	})
	return errors.Join(<-podErr, err)
}

// tee gives every signal to two who listen.
func tee(ctx context.Context, signals <-chan os.Signal) (a, b <-chan os.Signal) {
	x, y := make(chan os.Signal, 8), make(chan os.Signal, 8)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s, ok := <-signals:
				if !ok {
					return
				}
				for _, c := range []chan os.Signal{x, y} {
					select {
					case c <- s:
					default: // it has more than it listens to
					}
				}
			}
		}
	}()
	return x, y
}

// awaitWorkloads waits until every workload is as it should be: its new pods run, or with
// wait it is available or complete.
func (f *front) awaitWorkloads(ctx context.Context, dirs store.Dirs, places []store.Workload, how patience) error {
	errs := make([]error, len(places))
	var all sync.WaitGroup
	for i, w := range places {
		all.Go(func() { errs[i] = f.awaitWorkload(ctx, dirs, w, how) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// patience is how long a workload is waited for.
type patience struct {
	wait     bool // until it is available or complete
	failFast bool // but not beyond an image that could not be pulled once
}

// current reports whether a pod is of the version that the object asks for, and is to stay.
func (v *view) current(p *workload.Pod) bool {
	return !p.Stopping && (p.Revision == "" || p.Revision == v.spec.Revision)
}

func (f *front) awaitWorkload(ctx context.Context, dirs store.Dirs, w store.Workload, how patience) error {
	tell := map[string]*narrator{}
	last := ""
	for {
		v, err := viewOf(dirs, w)
		if errors.Is(err, fs.ErrNotExist) {
			return report.New(report.Failure, "", "%s was removed by another podrun, or is over", w.Name)
		}
		if err != nil {
			return err
		}
		for i := range v.pods {
			p := &v.pods[i]
			if v.state.Generation != v.object.Revision || !v.current(p) || v.status[p.Name] == nil {
				continue
			}
			if a := v.status[p.Name].Awaits; a != nil && a.Error != "" && (how.failFast || !a.Passes) {
				return report.New(report.Failure, a.Hint, "%s is left as it is: its pod %s waits: %s", v.name(), p.Name, a.Error)
			}
		}
		for name, st := range v.status {
			if tell[name] == nil {
				tell[name] = &narrator{out: f.err, pod: name}
			}
			tell[name].status(st)
		}
		word, err := v.arrived(how.wait)
		if err != nil {
			return f.explain(v, err)
		}
		if how.wait || word != "" {
			last = f.waitsFor(v, last)
		}
		if word != "" {
			fmt.Fprintf(f.out, "%s %s\n", v.name(), word)
			return nil
		}
		if alive, _, _ := w.Controller(); !alive && !v.decide(time.Now()).Done { // it was killed this moment
			if err := f.control(dirs, w); err != nil {
				return err
			}
		}
		if err := remote.Pause(ctx, 10*remote.PollTime); errors.Is(err, context.DeadlineExceeded) {
			return report.New(report.Failure, fmt.Sprintf("podrun get %s, podrun ps and podrun events show why", v.name()), "%s is not as it should be yet: it is left as it is", v.name())
		} else if err != nil {
			return err
		}
	}
}

// arrived says in a word that a workload has come as far as it is waited for, "" that it
// has not, or why it never will.
func (v *view) arrived(wait bool) (string, error) {
	if v.state.Generation != v.object.Revision {
		return "", nil // its controller has not seen it yet
	}
	d := v.decide(time.Now())
	over, well := v.state.Ended()
	switch {
	case over && well:
		return "complete", nil
	case over:
		c, _ := v.state.Condition("Failed")
		return "", &exitError{code: max(v.state.Job.ExitCode, exitFailure), err: report.New(report.Failure, "podrun get pods shows its pods, podrun logs what they wrote", "%s failed: %s", v.name(), with(c.Reason, c.Message))}
	case v.spec.Kind == pod.KindCronJob:
		return "scheduled", nil
	case v.spec.Kind == pod.KindJob && v.spec.Job.Suspend:
		return "suspended", nil
	case v.state.Refused != "":
		return "", report.New(report.Failure, fmt.Sprintf("it is tried again; podrun down %s gives it up", v.name()), "%s: cannot make its pods: %s", v.name(), v.state.Refused)
	case wait && v.state.Stuck():
		c, _ := v.state.Condition("Progressing")
		return "", report.New(report.Failure, fmt.Sprintf("podrun get pods and podrun logs show why; podrun down %s gives it up", v.name()), "%s: %s", v.name(), c.Message)
	case wait && v.spec.Kind != pod.KindJob && d.Settled:
		return "available", nil
	case !wait && v.begun(&d):
		return "running", nil
	}
	return "", nil
}

// begun says whether the pods of the newest version that there can be now run.
func (v *view) begun(d *workload.Decision) bool {
	if len(d.Make) > 0 {
		return false
	}
	n := 0
	for i := range v.pods {
		p := &v.pods[i]
		if !v.current(p) {
			continue
		}
		if !p.Phase.Terminal() && !up(v.status[p.Name]) {
			return false
		}
		n++
	}
	return n > 0 || v.spec.Replicas == 0 && v.spec.Kind != pod.KindJob
}

// explain adds to a failure what the pod that failed last wrote last.
func (f *front) explain(v *view, err error) error {
	var last *workload.Pod
	for i := range v.pods {
		if p := &v.pods[i]; p.Phase == pod.Failed && (last == nil || p.Ended.After(last.Ended)) {
			last = p
		}
	}
	if last == nil {
		return err
	}
	said := withLastLines(v.places[last.Name], v.status[last.Name], err)
	if e := asExit(err); e != nil {
		return &exitError{code: e.code, err: said}
	}
	return said
}
