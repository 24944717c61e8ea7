package up

import (
	"context"
	"os"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/imagebuild"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
)

// hooks are called between the steps of a run. The foreground, up -d, apply and a unit of systemd differ
// only in their hooks.
type hooks interface {
	BeforeLoad(context.Context) error
	// Loaded gets the run, whose manifests are valid.
	Loaded(*podup.Run, follow.ExitCodeFrom) error
	// Prepared is called before the first pod is started.
	Prepared() error
	// AfterStart follows the started pods as the command requires. startErr is the error of pods that were not
	// started.
	AfterStart(ctx context.Context, startErr error) error
	// CleanUp gets the error of the steps before, and returns the command's error.
	CleanUp(ctx context.Context, err error) error
}

// run loads the manifests, prepares the pods, starts and follows them, and cleans up.
func (o *runOptions) run(ctx context.Context, signals <-chan os.Signal, h hooks) error {
	return h.CleanUp(ctx, o.runSteps(ctx, signals, h))
}

// runSteps is run without the clean-up.
func (o *runOptions) runSteps(ctx context.Context, signals <-chan os.Signal, h hooks) error {
	if err := h.BeforeLoad(ctx); err != nil {
		return err
	}
	var r *podup.Run
	var rule follow.ExitCodeFrom
	err := cmdutil.Interruptible(ctx, signals, func(ctx context.Context) (err error) {
		r, rule, err = o.load(ctx)
		return err
	})
	if err != nil {
		return err
	}
	defer r.Release()
	if err := h.Loaded(r, rule); err != nil {
		return err
	}
	if err := cmdutil.Interruptible(ctx, signals, podup.WithTimeout(o.timeout, func(ctx context.Context) error {
		if err := controller.AwaitEnds(ctx, r); err != nil {
			return err
		}
		return r.Prepare(ctx)
	})); err != nil {
		return err
	}
	if err := h.Prepared(); err != nil {
		return err
	}
	if err := o.checkNew(r); err != nil { // the pull may have taken long
		return err
	}
	if err := o.removeLeaving(ctx, signals, r); err != nil {
		return err
	}
	startErr := podup.WithTimeout(o.timeout, func(ctx context.Context) error { return r.StartInOrder(ctx, signals) })(ctx)
	return h.AfterStart(ctx, startErr)
}

// removeLeaving removes the pods that the others replace.
func (o *runOptions) removeLeaving(ctx context.Context, signals <-chan os.Signal, r *podup.Run) error {
	if len(r.Leaving) == 0 {
		return nil
	}
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		return controller.RemoveAll(ctx, o.env, r.Dirs, nil, r.Leaving, podclient.StopOptions{Progress: o.env.ErrOut})
	})
}

// load reads the manifests of a run, and checks that this machine can run them.
func (o *runOptions) load(ctx context.Context) (*podup.Run, follow.ExitCodeFrom, error) {
	env := o.env
	docs, err := o.loadManifests()
	if err == nil && o.dryRun == cmdutil.DryRunNone {
		err = imagebuild.BuildChanged(ctx, env, o.builds, env.Compose.Build)
	}
	if err != nil {
		return nil, "", err
	}
	if len(docs.Pods) != 1 || len(docs.Workloads) > 0 {
		o.preparation.End()
	}
	if err := o.applyToPods(&docs); err != nil {
		return nil, "", err
	}
	r, err := podup.New(ctx, env, o.preparation, docs, podup.Options{
		RequireLimits: o.requireLimits, Replace: o.replace, LogLimited: o.logMaxSize+o.logMaxFiles != "",
		Policy: o.policy, UnsafeSysctls: o.unsafeSysctls, PullPolicy: o.pullPolicy, Pull: o.pull,
	})
	if err != nil {
		return nil, "", err
	}
	r.Leaving = env.Compose.Leaving
	if err := o.checkNew(r); err != nil {
		return nil, "", err
	}
	rule, err := follow.ParseExitCodeFrom(o.exitCodeFrom, r.Targets)
	return r, rule, err
}

// checkNew returns an error if create -f would change something that exists.
func (o *runOptions) checkNew(r *podup.Run) error {
	if !o.onlyNew {
		return nil
	}
	return refuseExisting(r.Dirs, resource.Documents{Pods: r.PodObjects(), Stored: r.Stored, Workloads: r.Workloads})
}

// commandHooks are the hooks that up, up -d and apply share; the main process of a unit has its own hooks.
// BeforeLoad prespawns the first process of a pod, in parallel with the load of the manifests.
type commandHooks struct {
	env        *cmdutil.Env
	options    *runOptions
	retryPulls bool
	run        *podup.Run
	exitRule   follow.ExitCodeFrom // of --exit-code-from
}

// BeforeLoad prespawns the first process of a pod.
func (h *commandHooks) BeforeLoad(context.Context) error {
	h.options.preparation = h.env.StartPreparation()
	return nil
}

// Loaded keeps the run, and has it pull images in the background.
func (h *commandHooks) Loaded(r *podup.Run, rule follow.ExitCodeFrom) error {
	h.run, h.exitRule = r, rule
	r.RetryPulls, r.Background = h.retryPulls, true
	return nil
}

// Prepared does nothing.
func (h *commandHooks) Prepared() error { return nil }

// CleanUp ends the prespawned process if no pod has used it.
func (h *commandHooks) CleanUp(_ context.Context, err error) error {
	h.options.preparation.End()
	return err
}
