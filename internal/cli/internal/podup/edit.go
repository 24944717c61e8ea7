package podup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// Edit changes a pod by a change of the manifest that it was made from: one that runs as apply does, in the
// record of any other only labels and annotations. With dryRun it changes nothing. changed reports whether
// the manifest differs.
func Edit(ctx context.Context, env *cmdutil.Env, p store.Pod, dryRun cmdutil.DryRun, change func(*corev1.Pod) error) (changed bool, err error) {
	dirs, err := env.Dirs()
	if err != nil {
		return false, err
	}
	text, err := p.Manifest()
	if err != nil {
		return false, err
	}
	old, err := manifest.LoadRecorded(text)
	if err != nil {
		return false, err
	}
	next := old.Pod.DeepCopy()
	if err := change(next); err != nil {
		return false, err
	}
	o, err := manifest.NewObject("Pod", next)
	if err != nil {
		return false, report.New(report.Usage, "", "cannot change pod %s\n%w", p.Name, err)
	}
	d, err := manifest.Compare(old.Pod, next)
	if err != nil || d.Empty() {
		return false, err
	}
	plan, err := p.Plan()
	if err != nil {
		return false, err
	}
	if !p.Alive() {
		return true, editRecord(p, plan, text, o, d, dryRun)
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return false, err
	}
	r := &Run{Env: env, Dirs: dirs, Launcher: launcher, RequireLimits: plan.RequireLimits, Background: true, ReportTo: env.ErrOut, Targets: []*Target{{Object: o, Pod: p}}}
	defer r.Release()
	if dryRun != cmdutil.DryRunNone {
		return true, r.inspect(ctx)
	}
	if err := r.Prepare(ctx); err != nil {
		return false, err
	}
	if err := checkUnchanged(p, text); err != nil { // the images may have been pulled for a long time
		return false, err
	}
	return true, r.Start()
}

// checkUnchanged returns an error if a pod's manifest is no longer text, which an edit began with.
func checkUnchanged(p store.Pod, text []byte) error {
	now, err := p.Manifest()
	if err == nil && !bytes.Equal(now, text) {
		err = report.New(report.Failure, "try again", "pod %s was changed meanwhile by another podrun command", p.Name)
	}
	return err
}

// editRecord changes the labels and annotations of a pod without processes, in its record, whose manifest was
// text.
func editRecord(p store.Pod, plan *pod.Plan, text []byte, o *manifest.Object, d *build.Difference, dryRun cmdutil.DryRun) error {
	if d.Resources || d.MutableSpec || len(d.Images)+len(d.Ephemeral)+len(d.Immutable) > 0 {
		return report.New(report.Failure, "change its manifest; podrun up starts it", "pod %s does not run: only its labels and annotations can be changed", p.Name)
	}
	if dryRun != cmdutil.DryRunNone {
		return nil
	}
	lock, err := p.Lock()
	if errors.Is(err, store.ErrLocked) {
		return report.New(report.Failure, "try again", "pod %s is being changed by another podrun command", p.Name)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := checkUnchanged(p, text); err != nil {
		return err
	}
	recorded, err := manifest.Unmarshal(text)
	if err != nil {
		return fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	recorded.Labels, recorded.Annotations, plan.Labels = o.Pod.Labels, o.Pod.Annotations, o.Pod.Labels
	if text, err = manifest.Marshal(recorded); err != nil {
		return err
	}
	return p.ReplacePlan(plan, text)
}
