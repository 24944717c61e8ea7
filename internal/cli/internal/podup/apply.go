package podup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
)

// changes reports whether the manifest changes a container's image.
func (t *Target) changes(container string) bool {
	return t.Action == upplan.Change && slices.Contains(t.Change.Images, container)
}

// ApplyTime is how long a supervisor may take to change a running pod.
const ApplyTime = 30 * time.Second

// apply makes the pod's supervisor change the running pod.
func (r *Run) apply(p *Target) error {
	next := p.Object.Pod.DeepCopy()
	podutil.FillSystemFields(next, p.Plan.UID, p.Change.Old.CreationTimestamp.Time)
	next.Generation = build.NextGeneration(p.Change.Old, p.Object.Pod, p.Change.Difference)
	next.Spec.EphemeralContainers = build.MergeEphemeralContainers(p.Change.Old, next)
	text, err := manifest.Marshal(next)
	if err != nil {
		return err
	}
	if err := p.Pod.AddEvents(r.pullEvents(p)...); err != nil {
		return err
	}
	p.RestartCounts = p.Restarting()
	before, err := p.Pod.Plan()
	if err == nil {
		err = r.resize(p, before, text)
	}
	if err != nil {
		return fmt.Errorf("cannot change pod %s: %w", p.Pod.Name, err)
	}
	return nil
}

// resize applies the change with the Plan's values on the pod's scope. The scope is first: if this process is killed in
// between, the record still differs from the manifest, and the next `podrun up` does both again.
func (r *Run) resize(p *Target, before *pod.Plan, text []byte) error {
	if err := r.Launcher.ResizeScope(p.Pod, before, p.Plan); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ApplyTime)
	defer cancel()
	err := p.Apply(ctx, text)
	if err != nil {
		err = errors.Join(err, r.Launcher.ResizeScope(p.Pod, p.Plan, before))
	}
	return err
}

// Apply makes the pod's supervisor change the running pod to the Plan and a manifest. Applying a change twice is
// harmless.
func (t *Target) Apply(ctx context.Context, text []byte) error {
	if t.Plan.ImagesPending {
		return report.New(report.Failure, "try again when it runs; podrun events "+t.Pod.Name+" shows the progress of its images", "pod %s waits for its images: no container of it runs yet", t.Pod.Name)
	}
	plan, err := json.Marshal(t.Plan)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	err = podclient.Request(ctx, t.Pod, wire.Request{Verb: wire.Apply, Apply: &wire.ApplyRequest{Plan: plan, Manifest: text}})
	if err != nil && ctx.Err() != nil {
		return errors.New("its supervisor does not answer")
	}
	return err
}

// Restarting returns the running containers that the change restarts, with their restart counts.
func (t *Target) Restarting() map[string]int {
	counts := map[string]int{}
	before, err := t.Pod.Plan()
	st, serr := t.Pod.Status()
	if errors.Join(err, serr) != nil {
		return counts
	}
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for _, c := range list {
			was, _ := before.Container(c.Name)
			is, _ := t.Plan.Container(c.Name)
			if c.State.Running != nil && was != nil && is != nil && was.Revision != is.Revision {
				counts[c.Name] = c.RestartCount
			}
		}
	}
	return counts
}

// RestartsDone reports whether every container that a change restarts has been started again.
func (t *Target) RestartsDone(st *pod.Status) bool {
	for name, before := range t.RestartCounts {
		c, ok := st.Container(name)
		if ok && (c.RestartCount <= before || c.State.Running == nil && c.State.Terminated == nil) {
			return false
		}
	}
	return true
}

// StopOld stops and removes the pod that the new one replaces.
func (r *Run) StopOld(p *Target) error {
	fmt.Fprintf(r.Env.ErrOut, "podrun: replacing pod %s\n", p.Pod.Name)
	if err := podclient.Stop(context.Background(), p.Pod, podclient.StopOptions{Remove: r.Launcher.Remove, Progress: r.Env.ErrOut}); err != nil {
		return err
	}
	return r.checkWithdrawn(p)
}
