// Package wait has the commands wait and condition.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/cli/internal/rollout"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// NewCommand returns the command wait.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until pods are as they should be",
		ArgsUsage: "POD... | --all",
		Description: `Waits until every pod has a condition or a phase, or is gone, as kubectl wait
does. It fails when the time is over, and at once when a pod has ended and what
is waited for cannot come any more. Without --for it waits until pods are Ready,
Deployments Available and Jobs Complete.

Examples:
  podrun wait web
  podrun wait --for=condition=Ready web
  podrun wait --for=condition=Ready=False web --timeout 5m
  podrun wait --for=phase=Succeeded job --timeout 1h
  podrun wait --for=delete web
  podrun wait --for=condition=Available deployment/web
  podrun wait --for=condition=Complete job/hello --timeout 10m
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "for", Usage: "what to wait for: `condition=TYPE[=STATUS]`, phase=PHASE, jsonpath='{.status.phase}'=PHASE or delete"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "give up after this `DURATION`; 0 looks once, a negative one waits a week"},
			&cli.BoolFlag{Name: "all", Usage: "wait for all pods of the namespace"},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "with --all: of all namespaces"},
		},
		Action: func(c *cli.Context) error { return run(env, c) },
	}
}

const week = 7 * 24 * time.Hour

// waitCondition is the condition to wait for.
type waitCondition struct {
	text    string // as the user wrote it
	gone    bool   // wait for the pod's removal
	implied bool   // --for is not set: it depends on the kind
	phase   bool   // the condition is a phase
	met     func(*pod.Status) bool
}

// parseGoal parses the value of --for.
func parseGoal(text string) (waitCondition, error) {
	kind, rest, _ := strings.Cut(text, "=")
	g := waitCondition{text: text}
	switch strings.ToLower(kind) {
	case "delete":
		g.gone = true
		if rest == "" {
			return g, nil
		}
	case "condition":
		name, status, given := strings.Cut(rest, "=")
		if !given {
			status = "True"
		}
		if name != "" && status != "" {
			g.met = func(st *pod.Status) bool { return hasCondition(st, name, status) }
			return g, nil
		}
	case "jsonpath":
		path, value, _ := strings.Cut(rest, "=")
		if path = strings.Trim(path, "'{}"); path != ".status.phase" && path != "status.phase" {
			return g, cmdutil.UsageErrorf("wait", "of a pod's fields podrun waits for {.status.phase} only")
		}
		rest = value
		fallthrough
	case "phase":
		for _, phase := range []pod.Phase{pod.Pending, pod.Running, pod.Succeeded, pod.Failed} {
			if string(phase) == rest {
				g.met, g.phase = func(st *pod.Status) bool { return st.Phase == phase }, true
				return g, nil
			}
		}
		return g, cmdutil.UsageErrorf("wait", "a pod's phase is Pending, Running, Succeeded or Failed, not %q", rest)
	}
	return g, cmdutil.UsageErrorf("wait", "--for takes condition=TYPE, condition=TYPE=STATUS, phase=PHASE or delete")
}

func hasCondition(st *pod.Status, name, status string) bool {
	for _, c := range st.Conditions {
		if strings.EqualFold(c.Type, name) {
			return strings.EqualFold(c.Status, status)
		}
	}
	return false
}

func run(env *cmdutil.Env, c *cli.Context) error {
	g, err := parseGoal(cmp.Or(c.String("for"), "condition=Ready"))
	if err != nil {
		return err
	}
	g.implied = !c.IsSet("for")
	words, all := c.Args().Slice(), c.Bool("all")
	switch {
	case all && len(words) > 0:
		return cmdutil.UsageErrorf("wait", "wait takes either names or --all, not both")
	case !all && len(words) == 0:
		return cmdutil.UsageErrorf("wait", "wait takes the names of pods, or --all")
	case !all && c.Bool("all-namespaces"):
		return cmdutil.UsageErrorf("wait", "a pod cannot be named across all namespaces")
	}
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	var places []store.Pod
	if all {
		if places, err = resource.ListPods(dirs, c.String("namespace"), c.Bool("all-namespaces")); err != nil {
			return err
		}
	}
	workloads, words, err := resource.SplitWorkloads(dirs, c.String("namespace"), words)
	if err != nil && !g.gone {
		return err
	}
	for _, w := range workloads {
		if g.implied && w.Kind != pod.KindDeployment && w.Kind != pod.KindJob {
			return cmdutil.UsageErrorf("wait", "%s/%s is neither a deployment nor a job: --for says what to wait for", kindnames.Of(w.Kind), w.Name)
		}
	}
	if len(workloads) > 0 && g.phase {
		return cmdutil.UsageErrorf("wait", "pods have phases; wait for a condition of what makes them: Available, Complete")
	}
	var errs []error
	for _, word := range words {
		p, err := resource.ExistingPod(dirs, c.String("namespace"), word)
		switch {
		case err == nil:
			places = append(places, p)
		case !g.gone: // for --for=delete a missing pod is no error
			errs = append(errs, err)
		}
	}
	errs = append(errs, waitForWorkloads(c.Context, env, dirs, workloads, g, c.Duration("timeout")))
	return errors.Join(append(errs, waitFor(c.Context, env, places, g, c.Duration("timeout")))...)
}

// waitFor waits for all pods concurrently, and reports each one that meets the condition.
func waitFor(ctx context.Context, env *cmdutil.Env, places []store.Pod, g waitCondition, timeout time.Duration) error {
	limit := timeout
	switch {
	case timeout < 0:
		limit = week
	case timeout == 0:
		limit = lookTime
	}
	errs := make([]error, len(places))
	var say sync.Mutex
	var waiting sync.WaitGroup
	for i, p := range places {
		waiting.Go(func() {
			within, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			errs[i] = g.await(within, p, timeout == 0)
			switch {
			case errs[i] == nil:
				say.Lock()
				defer say.Unlock()
				fmt.Fprintf(env.Out, "pod/%s condition met\n", p.Name)
			case errors.Is(errs[i], context.DeadlineExceeded):
				errs[i] = report.New(report.Failure, "podrun ps and podrun events show how it is", "pod %s has not met %s within %v", p.Name, g.text, timeout)
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// lookTime limits a single check of a pod.
const lookTime = 10 * time.Second

// await returns when the pod meets the condition; with once, after one check.
func (g waitCondition) await(ctx context.Context, p store.Pod, once bool) error {
	for g.gone {
		switch {
		case !p.Exists():
			return nil
		case once:
			return context.DeadlineExceeded
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); err != nil {
			return err
		}
	}
	st, err := podview.StatusOf(p)
	if err == nil && !g.met(st) && !once && !st.Phase.Terminal() {
		err = podclient.WatchStatus(ctx, p, func(now *pod.Status) bool {
			st = now
			return g.met(now)
		})
		if errors.Is(err, podclient.ErrNotRunning) || err == nil && !g.met(st) && !st.Phase.Terminal() {
			st, err = rollout.FinalStatus(ctx, p) // it ended before the request
		}
	}
	switch {
	case err != nil:
		return err
	case g.met(st):
		return nil
	case once && !st.Phase.Terminal():
		return context.DeadlineExceeded
	}
	return report.New(report.Failure, "podrun logs and podrun events show why", "pod %s has ended (%s) without meeting %s", p.Name, st.Phase, g.text)
}

// waitForWorkloads waits for all workloads concurrently.
func waitForWorkloads(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, list []store.Workload, g waitCondition, timeout time.Duration) error {
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
		name := kindnames.Of(w.Kind) + "/" + w.Name
		g := g.forKind(w.Kind)
		err := g.awaitWorkload(within, dirs, w, timeout == 0)
		switch {
		case err == nil:
			fmt.Fprintf(env.Out, "%s condition met\n", name)
		case errors.Is(err, context.DeadlineExceeded):
			err = report.New(report.Failure, "podrun get "+name+" shows how it is", "%s has not met %s within %v", name, g.text, timeout)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// awaitWorkload waits until a workload meets the condition of `podrun wait`.
func (g waitCondition) awaitWorkload(ctx context.Context, dirs store.Dirs, w store.Workload, once bool) error {
	for {
		v, err := resource.LoadWorkload(dirs, w)
		gone := errors.Is(err, fs.ErrNotExist)
		switch {
		case gone && g.gone:
			return nil
		case gone:
			return report.New(report.Failure, "", "%s %s was removed", w.Kind, w.Name)
		case err != nil:
			return err
		case !g.gone && v.State.Generation == v.Object.Revision && g.met(v.Conditions()):
			return nil
		case once:
			return context.DeadlineExceeded
		}
		if over, _ := v.State.Ended(); over && !g.gone {
			return report.New(report.Failure, "podrun get "+v.Name()+" and podrun logs show why", "%s has ended without meeting %s", v.Name(), g.text)
		}
		if err := sleep.For(ctx, 10*podclient.PollTime); err != nil {
			return err
		}
	}
}

// forKind returns the condition for a workload of a kind, with the default of a Deployment or a Job if
// --for is not set.
func (g waitCondition) forKind(kind pod.ObjectKind) waitCondition {
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
