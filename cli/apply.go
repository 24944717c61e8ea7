package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/build"
	"github.com/podrun/podrun/manifest/podutil"
	"github.com/podrun/podrun/pod"
)

// change is what a manifest changes about a pod that runs.
type change struct {
	*manifest.Difference
	old *corev1.Pod // made from which it runs
}

// errOtherManifest says that a pod runs which cannot become what its manifest says.
var errOtherManifest = errors.New("made from a manifest that differs in what cannot be changed while it runs")

// maxFields is how many fields an error names.
const maxFields = 10

// recognize looks at a pod that is running already. It may stay if its manifest is the
// same, or differs in what can be changed while it runs; otherwise --replace makes way
// for another.
func (l *launch) recognize(p *upPod) error {
	stored, err := p.place.Manifest()
	if errors.Is(err, os.ErrNotExist) {
		return busy(p.place)
	}
	if err != nil {
		return err
	}
	old, err := manifest.Unmarshal(stored)
	if err != nil {
		return fmt.Errorf("read manifest of pod %s: %w", p.place.Name, err)
	}
	d, err := manifest.Compare(old, p.object.Pod)
	if err != nil {
		return err
	}
	if plan, err := p.place.Plan(); err == nil && plan.Awaits { // nothing of it has been started
		p.pending, p.plan = true, plan
		p.awaits, p.running, p.started, p.replaces = d.Empty(), d.Empty(), d.Empty(), !d.Empty()
		return nil
	}
	if refused := refuseChange(p, old, d); refused != nil {
		if p.replaces = l.replace; l.replace {
			return nil
		}
		return refused
	}
	if !d.Empty() {
		p.change = &change{d, old}
		if err := l.join(p); err != nil {
			return err
		}
	}
	if p.plan, err = p.place.Plan(); err != nil {
		return err
	}
	p.running, p.started = true, true
	return nil
}

// refuseChange is why a pod that runs cannot become what its manifest says, or nil.
func refuseChange(p *upPod, old *corev1.Pod, d *manifest.Difference) error {
	if len(d.Immutable) == 0 {
		if err := manifest.ValidatePodUpdate(p.object, old); err != nil {
			return report.New(report.Failure, replaceHint(p), "%w", err)
		}
		return nil
	}
	fields := d.Immutable
	more := ""
	if n := len(fields) - maxFields; n > 0 {
		fields, more = fields[:maxFields], fmt.Sprintf(" and %d more", n)
	}
	return report.New(report.Failure, replaceHint(p), "pod %s is running already, %w: %s%s",
		p.place.Name, errOtherManifest, strings.Join(fields, ", "), more)
}

func replaceHint(p *upPod) string {
	return fmt.Sprintf("podrun up --replace stops it and starts the new one; podrun down %s removes it", p.place.Name)
}

// changes says whether a container of the pod has another image now.
func (p *upPod) changes(container string) bool {
	return p.change != nil && slices.Contains(p.change.Images, container)
}

// applyTime is how long a supervisor may take to change what runs.
const applyTime = 30 * time.Second

// apply has the pod's supervisor change what runs.
func (l *launch) apply(p *upPod) (err error) {
	next := p.object.Pod.DeepCopy()
	podutil.FillSystemFields(next, p.plan.UID, p.change.old.CreationTimestamp.Time)
	next.Generation = build.NextGeneration(p.change.old, p.object.Pod, p.change.Difference)
	next.Spec.EphemeralContainers = build.MergeEphemeralContainers(p.change.old, next)
	text, err := manifest.Marshal(next)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), applyTime)
	defer cancel()
	if err := p.place.AddEvents(l.fetched(p)...); err != nil {
		return err
	}
	p.renewed = p.restarting()
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot change pod %s: %w", p.place.Name, err)
		}
	}()
	return remote.Persist(ctx, p.place, func() error { return p.applyOnce(ctx, text) })
}

// applyOnce is apply at one supervisor. It does no harm to apply twice.
func (p *upPod) applyOnce(ctx context.Context, text []byte) error {
	if p.plan.Awaits {
		return report.New(report.Failure, "try again when it runs; podrun events "+p.place.Name+" shows how its images come", "pod %s waits for its images: no container of it runs yet", p.place.Name)
	}
	plan, err := json.Marshal(p.plan)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	conn, err := remote.Ask(ctx, p.place, wire.Request{Verb: wire.Apply, Apply: &wire.ApplyRequest{Plan: plan, Manifest: text}})
	if err != nil {
		return err
	}
	defer conn.Close()
	frame, _, err := wire.ReadFrame(conn)
	switch {
	case ctx.Err() != nil:
		return errors.New("its supervisor does not answer")
	case err != nil:
		return err
	case frame.Error != nil:
		return wireError(frame.Error)
	}
	return nil
}

// restarting are those of the pod's containers that run and will be restarted, with
// their restart counts.
func (p *upPod) restarting() map[string]int {
	counts := map[string]int{}
	before, err := p.place.Plan()
	st, serr := p.place.Status()
	if errors.Join(err, serr) != nil {
		return counts
	}
	for _, list := range [][]pod.ContainerStatus{st.InitContainers, st.Containers} {
		for _, c := range list {
			was, _ := before.Container(c.Name)
			is, _ := p.plan.Container(c.Name)
			if c.State.Running != nil && was != nil && is != nil && was.Revision != is.Revision {
				counts[c.Name] = c.RestartCount
			}
		}
	}
	return counts
}

// follows says whether every container that a change restarts has been started again.
func (p *upPod) follows(st *pod.Status) bool {
	for name, before := range p.renewed {
		c, ok := st.Container(name)
		if ok && (c.RestartCount <= before || c.State.Running == nil && c.State.Terminated == nil) {
			return false
		}
	}
	return true
}

// makeWay stops and removes the pod that another is to replace.
func (l *launch) makeWay(p *upPod) error {
	fmt.Fprintf(l.front.err, "podrun: replacing pod %s\n", p.place.Name)
	if err := downTelling(context.Background(), l.front.err, l.keeper.remove, p.place, ending{}); err != nil {
		return err
	}
	return l.withdrawn(p)
}
