package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/progress"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// AwaitReady waits until a pod is ready or has succeeded, and every container that a change restarts has been started
// again. It returns the pod's status then. ctx ends when the timeout, which the error names, is over.
func AwaitReady(ctx context.Context, env *cmdutil.Env, p *podup.Target, timeout time.Duration) (*pod.Status, error) {
	shown := progress.New(env, "")
	defer shown.End()
	shown.Wait("waiting for pod %s to be ready", p.Pod.Name)
	reporter := Reporter{Out: shown, Pod: p.Pod.Name}
	last, err := podclient.Follow(ctx, p.Pod, func(st *pod.Status) bool {
		reporter.Status(st)
		return (st.Ready() || st.Phase.Terminal()) && p.RestartsDone(st)
	})
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("pod %s is not ready after %v%s", p.Pod.Name, timeout, problemSuffix(last))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case last.Phase == pod.Failed:
		return nil, fmt.Errorf("pod %s has failed%s", p.Pod.Name, problemSuffix(last))
	}
	return last, nil
}

// StaysReady checks that a pod stays ready, without a restart, for a time. last is its status when it was ready.
func StaysReady(ctx context.Context, env *cmdutil.Env, p store.Pod, last *pod.Status, stable time.Duration) error {
	if last.Phase.Terminal() || stable == 0 {
		return nil
	}
	shown := progress.New(env, "")
	defer shown.End()
	shown.Wait("pod %s must stay ready for %v", p.Name, stable)
	restarts := restartsOf(last)
	within, cancel := context.WithTimeout(ctx, stable)
	defer cancel()
	podclient.Follow(within, p, func(st *pod.Status) bool { // until the time is over, or the pod fails
		last = st
		return st.Phase.Terminal() || !st.Ready() || restartsOf(st) != restarts
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case last.Phase == pod.Failed:
		return fmt.Errorf("pod %s has failed%s", p.Name, problemSuffix(last))
	case restartsOf(last) != restarts || !last.Ready() && last.Phase != pod.Succeeded:
		return fmt.Errorf("pod %s did not stay ready for %v%s", p.Name, stable, problemSuffix(last))
	}
	return nil
}

// problemSuffix returns the problem of the first failed container, after a colon, or "". It is printed because the pod is
// removed next, with all other traces of the problem.
func problemSuffix(st *pod.Status) string {
	if st == nil {
		return ""
	}
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for i := range list {
			c := &list[i]
			if text := problem(c); text != "" {
				return ": " + text
			}
			if t := c.LastState.Terminated; t != nil {
				return ": container " + c.Name + " " + exitTextWithMessage(t)
			}
		}
	}
	return ""
}

func restartsOf(st *pod.Status) int {
	n := 0
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for _, c := range list {
			n += c.RestartCount
		}
	}
	return n
}
