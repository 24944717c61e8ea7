// Package wait has the commands wait and condition.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command wait.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait for conditions of pods and workloads",
		ArgsUsage: "POD... | KIND/NAME... | --all",
		Description: `Waits until every pod has a condition or a phase, or is removed, as kubectl wait
does. It fails after the timeout, and at once if a pod has ended and the
condition can no longer be met. Without --for it waits until pods are Ready,
Deployments Available and Jobs Complete.

Examples:
  podrun wait web
  podrun wait --for=condition=Ready web
  podrun wait --for=condition=Ready=False web --timeout 5m
  podrun wait --for=phase=Succeeded migration --timeout 1h
  podrun wait --for=delete web
  podrun wait --for=condition=Available deployment/web
  podrun wait --for=condition=Complete job/hello --timeout 10m
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.StringFlag{Name: "for", Usage: "what to wait for: `condition=TYPE[=STATUS]`, phase=PHASE, jsonpath='{.status.phase}'=PHASE or delete"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "give up after this `DURATION`; 0 checks once, a negative one waits a week"},
			&cli.BoolFlag{Name: "all", Usage: "wait for all pods of the namespace"},
			&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "with --all: of all namespaces"},
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of wait.
type options struct {
	env           *cmdutil.Env
	dirs          store.Dirs
	namespace     string
	words         []string
	all           bool
	allNamespaces bool
	goal          waitCondition
	timeout       time.Duration // as given: 0 checks once
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.namespace, o.words = c.String("namespace"), c.Args().Slice()
	o.all, o.allNamespaces, o.timeout = c.Bool("all"), c.Bool("all-namespaces"), c.Duration("timeout")
	o.goal, err = parseWaitCondition(cmp.Or(c.String("for"), "condition=Ready"))
	o.goal.implied = !c.IsSet("for")
	return err
}

// Validate implements cmdutil.Command.
func (o *options) Validate() error {
	switch {
	case o.all && len(o.words) > 0:
		return cmdutil.UsageErrorf("wait", "wait requires either names or --all, not both")
	case !o.all && len(o.words) == 0:
		return cmdutil.UsageErrorf("wait", "wait requires the names of pods, or --all")
	case !o.all && o.allNamespaces:
		return cmdutil.UsageErrorf("wait", "a resource cannot be retrieved by name across all namespaces")
	}
	return nil
}

// Run waits for the workloads, then for the pods. Pods that do not exist do not keep it from waiting for the
// others.
func (o *options) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	workloads, words, err := resource.SplitWorkloads(o.dirs, o.namespace, o.words)
	if err != nil && !o.goal.gone {
		return err
	}
	if err := o.checkWorkloads(workloads); err != nil {
		return err
	}
	pods, missing := o.pods(words)
	return errors.Join(missing, o.waitForWorkloads(ctx, workloads), o.waitForPods(ctx, pods))
}

// checkWorkloads refuses a condition that workloads do not have.
func (o *options) checkWorkloads(list []store.Workload) error {
	for _, w := range list {
		if o.goal.implied && w.Kind != pod.KindDeployment && w.Kind != pod.KindJob {
			return cmdutil.UsageErrorf("wait", "%s/%s is neither a deployment nor a job: set --for", kindnames.Of(w.Kind), w.Name)
		}
	}
	if len(list) > 0 && o.goal.phase {
		return cmdutil.UsageErrorf("wait", "only pods have phases; wait for a condition of the workload: Available, Complete")
	}
	return nil
}

// pods returns the named pods, or all with --all.
func (o *options) pods(words []string) ([]store.Pod, error) {
	if o.all {
		return resource.ListPods(o.dirs, o.namespace, o.allNamespaces)
	}
	var pods []store.Pod
	var errs []error
	for _, word := range words {
		p, err := resource.ExistingPod(o.dirs, o.namespace, word)
		switch {
		case err == nil:
			pods = append(pods, p)
		case !o.goal.gone: // for --for=delete a missing pod is no error
			errs = append(errs, err)
		}
	}
	return pods, errors.Join(errs...)
}

// limit returns the time for which the command waits.
func (o *options) limit() time.Duration {
	switch {
	case o.timeout < 0:
		return week
	case o.timeout == 0:
		return checkTime
	}
	return o.timeout
}

const (
	week      = 7 * 24 * time.Hour
	checkTime = 10 * time.Second // for a single check of a pod
)

// waitForPods waits for all pods concurrently, and prints each one that meets the condition.
func (o *options) waitForPods(ctx context.Context, pods []store.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	errs := make([]error, len(pods))
	var printing sync.Mutex
	var waiting sync.WaitGroup
	for i, p := range pods {
		waiting.Go(func() {
			errs[i] = o.goal.await(ctx, p, o.timeout == 0)
			switch {
			case errs[i] == nil:
				printing.Lock()
				defer printing.Unlock()
				fmt.Fprintf(o.env.Out, "pod/%s condition met\n", p.Name)
			case errors.Is(errs[i], context.DeadlineExceeded):
				errs[i] = report.New(report.Failure, "podrun ps and podrun events show its state", "pod %s has not met %s within %v", p.Name, o.goal.text, o.timeout)
			}
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// waitForWorkloads waits for one workload after the other, in the time for all of them.
func (o *options) waitForWorkloads(ctx context.Context, list []store.Workload) error {
	ctx, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	var errs []error
	for _, w := range list {
		name := kindnames.Of(w.Kind) + "/" + w.Name
		g := o.goal.forKind(w.Kind)
		err := g.awaitWorkload(ctx, o.dirs, w, o.timeout == 0)
		switch {
		case err == nil:
			fmt.Fprintf(o.env.Out, "%s condition met\n", name)
		case errors.Is(err, context.DeadlineExceeded):
			err = report.New(report.Failure, "podrun get "+name+" shows its state", "%s has not met %s within %v", name, g.text, o.timeout)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
