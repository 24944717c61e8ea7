package podup

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// chooseStep compares a pod with what there is of it, and decides its step.
func (r *Run) chooseStep(ctx context.Context, p *Target) error {
	if err := r.pinImages(p); err != nil {
		return err
	}
	if err := resource.RefuseOtherProject(p.Pod, p.Object.Pod, "podrun up -n PROJECT runs it in another namespace"); err != nil {
		return err
	}
	o, err := r.observeFor(ctx, p)
	if err != nil {
		return err
	}
	how := r.Env.Compose.Recreate
	p.Step, err = upplan.Decide(p.Object, o, upplan.Rules{
		Replace: r.Replace || how == cmdutil.RecreateChanged, Recreate: p.Recreate, Leave: how == cmdutil.RecreateNever,
		Unit: r.Unit != nil, Owned: r.Unit != nil && o.Running && r.Unit.Owns(p.Pod),
	})
	switch {
	case errors.Is(err, upplan.ErrBusy):
		return busyError(p.Pod)
	case err != nil:
		return err
	}
	if p.Started = p.RanBefore(); p.Started || p.ReplacesPending {
		p.Plan = o.Plan
	}
	if err := r.beginStep(p, o); err != nil {
		return err
	}
	if r.Unit != nil && o.Running && p.Started {
		if err := r.Unit.TakeOver(ctx, p); err != nil {
			return err
		}
	}
	if !p.RanBefore() {
		return RefuseEphemeral(p.Object)
	}
	return nil
}

// observeFor returns what there is of a pod, and sets whether compose up recreates it.
func (r *Run) observeFor(ctx context.Context, p *Target) (*upplan.Observed, error) {
	how := r.Env.Compose.Recreate
	p.Recreate = p.Recreate || how == cmdutil.RecreateAlways
	o, err := observe(p)
	if err == nil && how == cmdutil.RecreateChanged && o.Running && o.Plan != nil {
		p.Recreate, err = r.hasNewImage(ctx, p, o.Plan)
	}
	return o, err
}

// hasNewImage reports whether the name of an image of a running pod now stands for another image that is here: a newer
// one was pulled or built.
func (r *Run) hasNewImage(ctx context.Context, p *Target, plan *pod.Plan) (bool, error) {
	if len(p.Pinned) > 0 || plan.ImagesPending {
		return false, nil
	}
	images, err := r.Env.Deps.OpenImages(r.Dirs)
	if err != nil {
		return false, err
	}
	for _, c := range plan.Containers {
		if img, err := images.Ensure(ctx, c.Image, image.Never, r.Pull); err == nil && img.ID != c.ImageID {
			return true, nil
		}
	}
	return false, nil
}

// beginStep reports a step that is not obvious, and loads what it needs.
func (r *Run) beginStep(p *Target, o *upplan.Observed) error {
	switch {
	case p.Resumed != nil:
		if p.Cluster == nil {
			p.Cluster = o.Plan.Cluster
		}
		fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s is resumed: %s\n", p.Pod.Name, podview.WhyLost(p.Pod))
	case p.Action == upplan.Keep && !o.Running:
		fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s had ended before the machine was restarted: it is not run again\n", p.Pod.Name)
	case p.Action == upplan.Change:
		return r.addEphemeral(p)
	}
	return nil
}

// observe returns what there is of a pod. A running pod must have a readable record; what cannot be read of another one
// is not there.
func observe(p *Target) (*upplan.Observed, error) {
	o := &upplan.Observed{Running: p.Pod.Alive()}
	if p.Recreate || !o.Running && !p.Pod.Exists() {
		return o, nil
	}
	text, err := p.Pod.Manifest()
	if err == nil {
		if o.Manifest, err = manifest.Unmarshal(text); err != nil {
			err = fmt.Errorf("read manifest of pod %s: %w", p.Pod.Name, err)
		} else {
			podutil.KeepHostPorts(o.Manifest, p.Object.Pod)
		}
	}
	if err == nil {
		o.Plan, err = p.Pod.Plan()
	}
	if o.Running && !errors.Is(err, os.ErrNotExist) {
		return o, err
	}
	if err == nil {
		o.Removing, o.HasRun, o.Rebooted = p.Pod.Removing(), podview.HasRun(p.Pod, o.Plan), podview.Rebooted(p.Pod)
		if st, err := p.Pod.Status(); err == nil {
			o.Status = st
		}
	}
	return o, nil
}
