package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/reading"
	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

func (f *front) waitCommand() *cli.Command {
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
			namespaceFlag(),
			&cli.StringFlag{Name: "for", Usage: "what to wait for: `condition=TYPE[=STATUS]`, phase=PHASE, jsonpath='{.status.phase}'=PHASE or delete"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "give up after this `DURATION`; 0 looks once, a negative one waits a week"},
			&cli.BoolFlag{Name: "all", Usage: "wait for all pods of the namespace"},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "with --all: of all namespaces"},
		},
		Action: f.wait,
	}
}

const week = 7 * 24 * time.Hour

// goal is what a pod is waited for.
type goal struct {
	text    string // in the user's words
	gone    bool   // the pod is to be removed
	implied bool   // none is given: it depends on the kind
	phase   bool   // it is a phase that is waited for
	met     func(*pod.Status) bool
}

// parseGoal reads the value of --for.
func parseGoal(text string) (goal, error) {
	kind, rest, _ := strings.Cut(text, "=")
	g := goal{text: text}
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
			return g, usageErrorf("wait", "of a pod's fields podrun waits for {.status.phase} only")
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
		return g, usageErrorf("wait", "a pod's phase is Pending, Running, Succeeded or Failed, not %q", rest)
	}
	return g, usageErrorf("wait", "--for takes condition=TYPE, condition=TYPE=STATUS, phase=PHASE or delete")
}

func hasCondition(st *pod.Status, name, status string) bool {
	for _, c := range st.Conditions {
		if strings.EqualFold(c.Type, name) {
			return strings.EqualFold(c.Status, status)
		}
	}
	return false
}

func (f *front) wait(c *cli.Context) error {
	g, err := parseGoal(cmp.Or(c.String("for"), "condition=Ready"))
	if err != nil {
		return err
	}
	g.implied = !c.IsSet("for")
	words, all := c.Args().Slice(), c.Bool("all")
	switch {
	case all && len(words) > 0:
		return usageErrorf("wait", "wait takes either names or --all, not both")
	case !all && len(words) == 0:
		return usageErrorf("wait", "wait takes the names of pods, or --all")
	case !all && c.Bool("all-namespaces"):
		return usageErrorf("wait", "a pod cannot be named across all namespaces")
	}
	dirs, err := f.dirs()
	if err != nil {
		return err
	}
	var places []store.Pod
	if all {
		if places, err = listed(dirs, c.String("namespace"), c.Bool("all-namespaces")); err != nil {
			return err
		}
	}
	workloads, words, err := workloadWords(dirs, c.String("namespace"), words)
	if err != nil && !g.gone {
		return err
	}
	for _, w := range workloads {
		if g.implied && w.Kind != pod.KindDeployment && w.Kind != pod.KindJob {
			return usageErrorf("wait", "%s/%s is neither a deployment nor a job: --for says what to wait for", kindWord(w.Kind), w.Name)
		}
	}
	if len(workloads) > 0 && g.phase {
		return usageErrorf("wait", "pods have phases; wait for a condition of what makes them: Available, Complete")
	}
	var errs []error
	for _, word := range words {
		p, err := existing(dirs, c.String("namespace"), word)
		switch {
		case err == nil:
			places = append(places, p)
		case !g.gone: // one that is not there is gone
			errs = append(errs, err)
		}
	}
	errs = append(errs, f.waitForWorkloads(c.Context, dirs, workloads, g, c.Duration("timeout")))
	return errors.Join(append(errs, f.waitFor(c.Context, places, g, c.Duration("timeout")))...)
}

// waitFor waits for all pods at once and says of each when it is as it should be.
func (f *front) waitFor(ctx context.Context, places []store.Pod, g goal, timeout time.Duration) error {
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
				fmt.Fprintf(f.out, "pod/%s condition met\n", p.Name)
			case errors.Is(errs[i], context.DeadlineExceeded):
				errs[i] = report.New(report.Failure, "podrun ps and podrun events show how it is", "pod %s has not met %s within %v", p.Name, g.text, timeout)
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// lookTime is how long one look at a pod may take.
const lookTime = 10 * time.Second

// await returns when the pod is as it should be; with once, after one look.
func (g goal) await(ctx context.Context, p store.Pod, once bool) error {
	for g.gone {
		switch {
		case !p.Exists():
			return nil
		case once:
			return context.DeadlineExceeded
		}
		if err := remote.Pause(ctx, 10*remote.PollTime); err != nil {
			return err
		}
	}
	st, err := reading.StatusOf(p)
	if err == nil && !g.met(st) && !once && !st.Phase.Terminal() {
		err = watch(ctx, p, func(now *pod.Status) bool {
			st = now
			return g.met(now)
		})
		if errors.Is(err, remote.ErrNotRunning) || err == nil && !g.met(st) && !st.Phase.Terminal() {
			st, err = final(ctx, p) // it has ended before we could ask
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
