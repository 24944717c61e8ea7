package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// Goal is the state in which `up -d` stops waiting for a pod.
type Goal struct {
	Word     string // running or ready
	Reached  func(*pod.Status) bool
	FailFast bool // the first failed pull of an image ends the wait
}

// GoalFor returns the goal running or, with --wait, ready.
func GoalFor(wait bool) Goal {
	if wait {
		return Goal{Word: "ready", Reached: (*pod.Status).Ready}
	}
	return Goal{Word: "running", Reached: (*pod.Status).AllStarted}
}

// awaitPod waits until the pod has reached the goal of `up -d` or has succeeded, and reports it.
func awaitPod(ctx context.Context, env *cmdutil.Env, p *podup.Target, to Goal, timeout time.Duration) error {
	reporter := Reporter{Out: env.ErrOut, Pod: p.Pod.Name}
	word := to.Word
	switch {
	case p.AwaitsImages:
		if err := AwaitImages(ctx, env, p, func(a *pod.ImagePull) bool { return to.FailFast || !a.Retryable }); err != nil {
			if exitcode.As(err) == nil && !errors.Is(err, context.Canceled) {
				fmt.Fprintf(env.ErrOut, "podrun: pod %[1]s keeps waiting for its images; podrun down %[1]s removes it\n", p.Pod.Name)
			}
			return err
		}
	case p.Action == upplan.Change:
		word = "configured"
	case p.Action == upplan.Keep:
		word = "unchanged"
	}
	defer reporter.WatchMounts(p)()
	last, err := reporter.awaitGoal(ctx, env, p, to, timeout)
	if err != nil {
		return err
	}
	switch last.Phase {
	case pod.Succeeded:
		word = "succeeded"
	case pod.Failed:
		return withLastLines(p.Pod, last, reporter.Failure(p.Pod, last))
	}
	fmt.Fprintf(env.Out, "pod/%s %s\n", p.Pod.Name, word)
	return nil
}

// awaitGoal waits until a pod has reached the goal or has ended, and returns its status.
func (r *Reporter) awaitGoal(ctx context.Context, env *cmdutil.Env, p *podup.Target, to Goal, timeout time.Duration) (last *pod.Status, err error) {
	see, end := r.hintWhileWaiting(p, to, env.WaitHintAfter, timeout > 0)
	last, err = podclient.Follow(ctx, p.Pod, func(st *pod.Status) bool {
		r.Status(st)
		see(st)
		return to.Reached(st) && p.RestartsDone(st)
	})
	end()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, report.New(report.Failure, fmt.Sprintf("podrun events %[1]s and podrun logs %[1]s show why; podrun down %[1]s removes it", p.Pod.Name),
			"pod %s is not %s after %v: it keeps running", p.Pod.Name, to.Word, timeout)
	}
	return last, err
}

// withLastLines adds the last output of the failed container to a pod's failure.
func withLastLines(p store.Pod, st *pod.Status, err error) error {
	if c := podview.FailedContainer(st); c != nil {
		return podview.WithLastLines(p, c.Name, err)
	}
	return err
}

// AwaitPods waits until every pod has reached the goal or has succeeded.
func AwaitPods(ctx context.Context, env *cmdutil.Env, pods []*podup.Target, to Goal, timeout time.Duration, signals <-chan os.Signal) error {
	wait := func(ctx context.Context) error {
		ctx, cancel := cmdutil.WithTimeout(ctx, timeout)
		defer cancel()
		errs := make([]error, len(pods))
		podup.ForEach(pods, func(i int, p *podup.Target) { errs[i] = awaitPod(ctx, env, p, to, timeout) })
		return errors.Join(errs...)
	}
	err := cmdutil.Interruptible(ctx, signals, wait)
	WarnOfLogout(env, pods)
	if status := exitcode.As(err); status != nil && status.Err == nil {
		for _, p := range pods {
			fmt.Fprintf(env.ErrOut, "podrun: pod %s keeps running; podrun down %s removes it\n", p.Pod.Name, p.Pod.Name)
		}
	}
	return err
}

// WarnOfLogout warns, once, that background pods will end with the user's last login, because the user's
// manager ends then.
func WarnOfLogout(env *cmdutil.Env, pods []*podup.Target) {
	warnOfLogout(env, pods, systemd.LingerEnabled)
}

func warnOfLogout(env *cmdutil.Env, pods []*podup.Target, lingers func() bool) {
	manager, ok := delegation.FindManager()
	if !ok || manager.Cgroup == delegation.Mount {
		return
	}
	for _, p := range pods {
		st, err := p.Pod.Status()
		if err == nil && strings.HasPrefix(st.Cgroup, manager.Cgroup+"/") && !lingers() {
			fmt.Fprintf(env.ErrOut, "podrun: warning: systemd ends pod %s when you log out; loginctl enable-linger keeps it running\n", p.Pod.Name)
			return
		}
	}
}
