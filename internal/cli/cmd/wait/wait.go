// Package wait has the commands wait and condition.
package wait

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	internalprinters "github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command wait.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait for conditions of pods, workloads and objects",
		ArgsUsage: "POD... | KIND NAME... | KIND/NAME... | KIND -l|--all",
		Description: `Waits until every pod or object has a condition, a phase or a value, or is
created or removed, as kubectl wait does. It fails after the timeout, and at
once if a pod or a Job has ended and the condition can no longer be met. Without
--for it waits until pods are Ready, Deployments Available and Jobs Complete.

Examples:
  podrun wait web
  podrun wait --for=condition=Ready pod -l app=web --timeout=90s
  podrun wait --for=condition=Ready=False pod web
  podrun wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web
  podrun wait --for=phase=Succeeded migration --timeout 1h
  podrun wait --for=create job/hello
  podrun wait --for=delete pods --all
  podrun wait --for=condition=Available deployment/web deployment/api
`,
		Flags: resource.TargetFlags(
			&cli.StringFlag{Name: "for", Usage: "what to wait for: `condition=TYPE[=STATUS]`, jsonpath='{PATH}'[=VALUE], phase=PHASE, create or delete"},
			&cli.DurationFlag{Name: "timeout", Value: 30 * time.Second, Usage: "give up after this `DURATION`; 0 checks once, a negative one waits a week"},
			resource.FieldSelectorFlag(),
		),
		Action: cmdutil.Action(func() cmdutil.Command { return &options{env: env} }),
	}
}

// options are the command line of wait.
type options struct {
	env     *cmdutil.Env
	dirs    store.Dirs
	named   *resource.Targets
	goal    waitCondition
	timeout time.Duration // as given: 0 checks once

	printing sync.Mutex
}

// Complete implements cmdutil.Command.
func (o *options) Complete(c *cli.Context) (err error) {
	o.timeout = c.Duration("timeout")
	if o.goal, err = parseWaitCondition(cmp.Or(c.String("for"), "condition=Ready")); err != nil {
		return err
	}
	o.goal.implied = !c.IsSet("for")
	words := c.Args().Slice()
	switch selects := c.Bool("all") || c.IsSet("selector") || c.IsSet("field-selector"); {
	case selects && len(words) == 0:
		words = []string{"pods"}
	case !selects && len(words) == 1 && !slices.Contains([]string{"pod", "pods", "po"}, words[0]):
		words = []string{resource.PodWord(words[0])} // a pod may be named as a kind: job
	}
	if o.named, err = resource.TargetsOf(o.env, c, resource.PodWords(words)); err == nil {
		o.named.Empty = errNothing
	}
	return err
}

// errNothing is kubectl's error for a selection without objects.
var errNothing = report.New(report.Failure, "podrun get lists the objects; podrun wait --for=create KIND/NAME waits for one", "no matching resources found")

// Validate implements cmdutil.Command.
func (o *options) Validate() error { return nil }

// Run waits for all targets concurrently. Objects that do not exist do not keep it from waiting for the others.
func (o *options) Run(ctx context.Context) (err error) {
	if o.dirs, err = o.env.Dirs(); err != nil {
		return err
	}
	refs, err := o.named.Find(o.dirs)
	if err != nil && o.goal.gone && errors.Is(err, errNothing) {
		return nil
	}
	if err != nil && len(refs) == 0 {
		return err
	}
	if err := o.checkKinds(refs); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	errs := make([]error, len(refs))
	var waiting sync.WaitGroup
	for i, ref := range refs {
		waiting.Go(func() { errs[i] = o.result(ref, o.await(ctx, ref)) })
	}
	waiting.Wait()
	return errors.Join(append(errs, err)...)
}

// checkKinds refuses a condition that objects of a kind do not have.
func (o *options) checkKinds(refs []kindnames.ObjectRef) error {
	for _, ref := range refs {
		switch {
		case ref.Kind == "":
		case o.goal.implied && ref.Kind != pod.KindDeployment && ref.Kind != pod.KindJob:
			return cmdutil.UsageErrorf("wait", "%s is neither a pod, a deployment nor a job: set --for", kindnames.DisplayRef(ref))
		case o.goal.phase:
			return cmdutil.UsageErrorf("wait", "only pods have phases; wait for a condition of the workload: Available, Complete")
		}
	}
	return nil
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

// exists returns an error if a target does not exist.
func (o *options) exists(ref kindnames.ObjectRef) (err error) {
	switch ref.Kind {
	case "":
		_, err = resource.ExistingPod(o.dirs, ref.Namespace, ref.Name)
	case pod.KindNamespace:
		_, err = resource.FindNamespace(o.dirs, ref.Name)
	default:
		_, err = resource.FindObject(o.dirs, ref.Kind, ref.Namespace, ref.Name)
	}
	return err
}

// errAbsent is the result for a target of --for=delete that does not exist: as with kubectl, nothing is printed.
var errAbsent = errors.New("it does not exist")

// await waits for one target.
func (o *options) await(ctx context.Context, ref kindnames.ObjectRef) error {
	once, missing := o.timeout == 0, o.exists(ref)
	switch gone := errors.Is(missing, cmdutil.ErrNotFound); {
	case o.goal.gone && gone:
		return errAbsent
	case o.goal.gone || o.goal.created:
		return poll(ctx, once, func() (bool, error) {
			err := o.exists(ref)
			if err != nil && !errors.Is(err, cmdutil.ErrNotFound) {
				return false, err
			}
			return (err == nil) == o.goal.created, nil
		})
	case missing != nil:
		return missing
	}
	goal := o.goal.forKind(ref.Kind)
	switch workload := kindnames.IsWorkload(ref.Kind); {
	case goal.met != nil && ref.Kind == "":
		return goal.await(ctx, o.dirs.Pod(ref.Namespace, ref.Name), once)
	case goal.met != nil && workload:
		w, err := o.dirs.Workload(ref.Kind, ref.Namespace, ref.Name)
		if err != nil {
			return err
		}
		return goal.awaitWorkload(ctx, o.dirs, w, once)
	}
	return poll(ctx, once, func() (bool, error) { return o.check(ref) })
}

// check reports whether an object meets the condition in its form of the Kubernetes API.
func (o *options) check(ref kindnames.ObjectRef) (bool, error) {
	list, err := internalprinters.List(o.env, o.dirs, kindnames.Query{Kind: ref.Kind, Names: []string{ref.Name}}, &internalprinters.PrintOptions{Namespace: ref.Namespace})
	if err != nil {
		return false, err
	}
	entry := &list.Entries[0]
	object, err := entry.Object()
	if err != nil {
		return false, err
	}
	met, err := o.goal.object(object)
	if entry.Pod != nil && entry.Pod.Status.Phase.Terminal() && !met && !o.goal.spec && err == nil {
		return false, o.goal.ended(o.dirs.Pod(ref.Namespace, ref.Name), entry.Pod.Status)
	}
	return met, err
}

// result prints that a target meets the condition, or returns kubectl's words for why it does not.
func (o *options) result(ref kindnames.ObjectRef, err error) error {
	hint := "podrun get " + kindnames.DisplayRef(ref) + " shows its state"
	place := kindnames.Plural(ref.Kind) + "/" + ref.Name
	switch {
	case errors.Is(err, errAbsent):
		return nil
	case err == nil:
		o.printing.Lock()
		defer o.printing.Unlock()
		_, err = fmt.Fprintf(o.env.Out, "%s condition met\n", kindnames.DisplayRef(ref))
		return err
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case o.timeout == 0:
		return report.New(report.Failure, hint, "condition not met for %s", place)
	case o.goal.created:
		hint = "podrun get " + kindnames.Plural(ref.Kind) + " lists what exists"
	}
	return report.New(report.Failure, hint, "timed out waiting for the condition on %s", place)
}
