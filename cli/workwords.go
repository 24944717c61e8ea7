package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/workload"
)

// workloadWords takes the words that name workloads, as deployment/web, from others.
func workloadWords(dirs store.Dirs, namespace string, words []string) (found []store.Workload, rest []string, err error) {
	var errs []error
	for _, word := range words {
		kind, names, ok := objectWords([]string{word})
		if !ok || !makesPods(kind) || !strings.Contains(word, "/") {
			rest = append(rest, word)
			continue
		}
		v, err := workloadNamed(dirs, kind, namespace, names[0])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, v.place)
	}
	return found, rest, errors.Join(errs...)
}

var errNoPods = errors.New("has no pods")

// podsOf replaces workloads among words by the names of their pods, the newest first;
// with one, by the newest that runs.
func (f *front) podsOf(dirs store.Dirs, namespace string, words []string, one bool) ([]string, error) {
	found, rest, err := workloadWords(dirs, namespace, words)
	if err != nil {
		return nil, err
	}
	for _, w := range found {
		v, err := viewOf(dirs, w)
		if err != nil {
			return nil, err
		}
		pods := v.pods
		for _, j := range v.jobs {
			pods = append(pods, j.pods...)
		}
		if len(pods) == 0 {
			return nil, report.New(report.Failure, "podrun get "+v.name()+" shows why", "%s %w", v.name(), errNoPods)
		}
		slices.SortFunc(pods, func(a, b workload.Pod) int {
			if a.Alive != b.Alive {
				return cmp.Compare(btoi(b.Alive), btoi(a.Alive))
			}
			return b.Created.Compare(a.Created)
		})
		if one {
			if len(pods) > 1 {
				fmt.Fprintf(f.err, "podrun: %s has %d pods; this is of pod/%s\n", v.name(), len(pods), pods[0].Name)
			}
			pods = pods[:1]
		}
		for i := range pods {
			rest = append(rest, pods[i].Name)
		}
	}
	return rest, nil
}

// podOf is the pod that a word names: its name, or a workload of which the newest pod
// that runs is meant.
func (f *front) podOf(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	words, err := f.podsOf(dirs, namespace, []string{word}, true)
	if err != nil {
		return store.Pod{}, err
	}
	return existing(dirs, namespace, words[0])
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// workloadsIn are the workloads that files name and that are there.
func (f *front) workloadsIn(dirs store.Dirs, files []string) (found []store.Workload, err error) {
	sources, err := f.readAll(files)
	if err != nil {
		return nil, err
	}
	named, err := decoded(sources)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, o := range named {
		if !o.IsWorkload() {
			continue
		}
		kind, _, _ := objectWords([]string{o.Kind})
		v, err := workloadNamed(dirs, kind, o.Value.GetNamespace(), o.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, v.place)
	}
	return found, errors.Join(errs...)
}

// downWorkload removes a workload with its pods. Its controller does it, or this process
// if there is none.
func (f *front) downWorkload(ctx context.Context, dirs store.Dirs, keeper pods, w store.Workload, how ending) error {
	boot, err := bootID()
	if err == nil {
		err = f.discard(dirs, []store.Workload{w})
	}
	if err != nil {
		return err
	}
	if v, err := viewOf(dirs, w); err == nil { // else it is gone
		var pods sync.WaitGroup
		defer pods.Wait() // a pod that is half removed is no longer a pod of the workload
		for _, p := range v.places {
			defer remote.Waiting(f.err, "stopping", p, how.grace, nil)()
			if how.force || how.grace != nil {
				pods.Go(func() { _ = downPod(ctx, f.err, keeper.remove, p, how) }) // the loop below sees the result
			}
		}
	}
	for {
		lock, err := w.Lock(boot)
		switch {
		case errors.Is(err, store.ErrLocked):
		case err != nil:
			return err
		default:
			err := f.endWorkload(ctx, dirs, keeper, w, how)
			lock.Close()
			return err
		}
		if _, err := w.Object(); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err := remote.Pause(ctx, 4*remote.PollTime); err != nil {
			return err
		}
	}
}

func (f *front) endWorkload(ctx context.Context, dirs store.Dirs, keeper pods, w store.Workload, how ending) error {
	c, err := f.newController(dirs, keeper, []store.Workload{w})
	if err != nil {
		return err
	}
	defer c.close()
	c.grace = how.grace
	if err := c.run(ctx, nil); err != nil {
		return err
	}
	return w.Remove() // what locking it has made again
}

// awaitGoal waits for a workload as `podrun wait` is told to.
func (g goal) awaitGoal(ctx context.Context, dirs store.Dirs, w store.Workload, once bool) error {
	for {
		v, err := viewOf(dirs, w)
		gone := errors.Is(err, fs.ErrNotExist)
		switch {
		case gone && g.gone:
			return nil
		case gone:
			return report.New(report.Failure, "", "%s %s was removed", w.Kind, w.Name)
		case err != nil:
			return err
		case !g.gone && v.state.Generation == v.object.Revision && g.met(v.conditions()):
			return nil
		case once:
			return context.DeadlineExceeded
		}
		if over, _ := v.state.Ended(); over && !g.gone {
			return report.New(report.Failure, "podrun get "+v.name()+" and podrun logs show why", "%s has ended without meeting %s", v.name(), g.text)
		}
		if err := remote.Pause(ctx, 10*remote.PollTime); err != nil {
			return err
		}
	}
}

// of is what a workload of a kind, a Deployment or a Job, is waited for without --for.
func (g goal) of(kind pod.ObjectKind) goal {
	if !g.implied {
		return g
	}
	condition := "Available"
	if kind == pod.KindJob {
		condition = "Complete"
	}
	g.text = "condition=" + condition
	g.met = func(st *pod.Status) bool { return hasCondition(st, condition, "True") }
	return g
}

// waitForWorkloads waits for all at once.
func (f *front) waitForWorkloads(ctx context.Context, dirs store.Dirs, list []store.Workload, g goal, timeout time.Duration) error {
	limit := timeout
	switch {
	case timeout < 0:
		limit = week
	case timeout == 0:
		limit = lookTime
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var errs []error
	for _, w := range list {
		name := kindWord(w.Kind) + "/" + w.Name
		g := g.of(w.Kind)
		err := g.awaitGoal(within, dirs, w, timeout == 0)
		switch {
		case err == nil:
			fmt.Fprintf(f.out, "%s condition met\n", name)
		case errors.Is(err, context.DeadlineExceeded):
			err = report.New(report.Failure, "podrun get "+name+" shows how it is", "%s has not met %s within %v", name, g.text, timeout)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
