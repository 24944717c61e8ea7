package podset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"golang.org/x/sync/errgroup"
)

// run is the run of a version: what is started and changed, and what leaves the set.
type run struct {
	*podup.Run
	leaving  []store.SetMember
	moving   []store.Pod              // their host ports go to other pods: they are removed before these start
	outcomes map[*podup.Target]string // what is done with each pod, for the user; nil for an update
}

// prepare does everything that can fail before the set is changed: it finds objects of others, compares all pods with what
// runs, and makes the Plans. A version without manifests is an empty set.
func (t *Transaction) prepare(ctx context.Context, v *version) (*run, error) {
	if v.Pins != nil {
		return t.preparePods(ctx, v)
	}
	if err := t.own(v); err != nil {
		return nil, err
	}
	if err := resource.ReportIgnored(t.env.ErrOut, v.docs.WithoutEffect(), t.Strict); err != nil {
		return nil, err
	}
	r, err := podup.New(ctx, t.env, nil, v.docs, t.options(v.SetVersion))
	if err != nil {
		return nil, err
	}
	next := &run{Run: r, outcomes: map[*podup.Target]string{}}
	next.moving = r.PortOwners()
	r.Leaving = slices.Clone(next.moving)
	for _, m := range t.record.Members() {
		if !slices.Contains(v.Members, m) {
			next.leaving = append(next.leaving, m)
			r.Leaving = append(r.Leaving, t.podsOf(m)...)
		}
	}
	err = objects.CheckServices(t.env, t.dirs, v.docs.Stored, func(o *pod.Object) bool {
		return slices.Contains(next.leaving, store.SetMember{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	})
	if err != nil {
		return nil, err
	}
	if err := controller.AwaitEnds(ctx, r); err != nil {
		return nil, err
	}
	if err := r.Prepare(ctx); err != nil {
		r.Release()
		return nil, err
	}
	for _, p := range r.Targets {
		next.outcomes[p] = p.Outcome()
	}
	return next, nil
}

// podsOf returns the pods of a member: itself, or the pods of a workload.
func (t *Transaction) podsOf(m store.SetMember) []store.Pod {
	if m.Kind == "" {
		return []store.Pod{t.dirs.Pod(m.Namespace, m.Name)}
	}
	if !kindnames.IsWorkload(m.Kind) {
		return nil
	}
	w, err := t.dirs.Workload(m.Kind, m.Namespace, m.Name)
	if err != nil {
		return nil // apply reports it
	}
	v, err := resource.LoadWorkload(t.dirs, w)
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Values(v.StoredPods))
}

// memberOf returns an object of manifests as a member.
func memberOf(o *manifest.Object) store.SetMember {
	if o.Pod != nil {
		return store.SetMember{Namespace: o.Pod.Namespace, Name: o.Pod.Name}
	}
	return store.SetMember{Kind: o.Stored.Kind, Namespace: o.Stored.Namespace, Name: o.Stored.Name}
}

// shared are the kinds of objects that a set may have in common with others. It neither changes nor removes an
// object of these kinds that it has not made.
var shared = []pod.ObjectKind{pod.KindNamespace, pod.KindClaim, pod.KindVolume}

// own sets the members of a version. A name that belongs to another set, or to something that no set has made, is an
// error.
func (t *Transaction) own(v *version) error {
	others, err := t.otherMembers()
	if err != nil {
		return err
	}
	mine := t.record.Members()
	var members []store.SetMember
	var errs []error
	for _, list := range [][]manifest.Object{v.docs.Pods, v.docs.Stored, v.docs.Workloads} {
		for i := range list {
			m := memberOf(&list[i])
			exists, err := t.exists(m)
			switch {
			case err != nil:
				errs = append(errs, err)
			case slices.Contains(shared, m.Kind) && exists && !slices.Contains(mine, m):
				errs = append(errs, t.refuseChange(&list[i], m))
			case others[m] != "":
				errs = append(errs, report.New(report.Usage, "give one of them another name or namespace", "%s: %s is of set %s", resource.Location(&list[i]), m, others[m]))
			case exists && !slices.Contains(mine, m):
				errs = append(errs, report.New(report.Failure, "podrun delete removes it, so that the set can make it", "%s: %s exists, and set %s has not made it", resource.Location(&list[i]), m, t.Name))
			default:
				members = append(members, m)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	v.Members = members
	return nil
}

// refuseChange returns an error if the manifest of an object that the set has not made differs from the object.
func (t *Transaction) refuseChange(o *manifest.Object, m store.SetMember) error {
	change, err := objects.Compare(t.env, t.dirs, o)
	if err == nil && change.Verb != "unchanged" {
		err = report.New(report.Failure, "podrun diff shows the difference; podrun apply changes it", "%s: %s exists, set %s has not made it, and its manifest differs", resource.Location(o), m, t.Name)
	}
	return err
}

// otherMembers returns the members of all other sets, with the set's name.
func (t *Transaction) otherMembers() (map[store.SetMember]string, error) {
	names, err := t.dirs.Sets()
	if err != nil {
		return nil, err
	}
	others := map[store.SetMember]string{}
	for _, name := range names {
		if name == t.Name {
			continue
		}
		s, err := t.dirs.Set(name)
		if err != nil {
			t.env.Warn(err) // a damaged record holds up its own set only
		}
		if s == nil {
			continue // removed meanwhile
		}
		for _, m := range s.Members() {
			others[m] = name
		}
	}
	return others, nil
}

func (t *Transaction) exists(m store.SetMember) (bool, error) {
	if m.Kind == "" {
		return t.dirs.Pod(m.Namespace, m.Name).HasRemains(), nil
	}
	_, err := t.dirs.Object(m.Kind, m.Namespace, m.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// carryOut applies a version, and waits until all of it is ready, within the timeout, and stays so.
func (t *Transaction) carryOut(ctx context.Context, r *run, timeout, stable time.Duration) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch err := t.apply(within, r); {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return fmt.Errorf("%s is not ready after %v: %w", t.title(), timeout, err)
	case err != nil:
		return err
	}
	last, err := t.awaitReady(within, r, timeout)
	if err == nil && stable > 0 {
		err = t.stayReady(ctx, r, last, stable)
	}
	if err != nil {
		return &notReadyError{err}
	}
	return nil
}

// notReadyError is the error of a version that is applied, but is not ready, or does not stay so.
type notReadyError struct{ error }

func (e *notReadyError) Unwrap() error { return e.error }

// apply removes the pods and workloads that leave the set, and the pods and Services whose ports move to others; stores the
// objects, and starts or changes the pods; and removes the other objects that leave.
func (t *Transaction) apply(ctx context.Context, r *run) error {
	if r.outcomes == nil {
		return t.applyPods(ctx, r)
	}
	pods := slices.Clone(r.moving)
	var workloads []store.Workload
	var yielding, rest []kindnames.ObjectRef
	for _, m := range r.leaving {
		switch {
		case m.Kind == "":
			if p := t.dirs.Pod(m.Namespace, m.Name); p.HasRemains() {
				pods = append(pods, p)
			}
		case kindnames.IsWorkload(m.Kind):
			w, err := t.dirs.Workload(m.Kind, m.Namespace, m.Name)
			if err != nil {
				return err
			}
			workloads = append(workloads, w)
		case t.yields(m, r.Stored):
			yielding = append(yielding, kindnames.ObjectRef{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name})
		default:
			rest = append(rest, kindnames.ObjectRef{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name})
		}
	}
	if err := controller.RemoveAll(ctx, t.env, t.dirs, workloads, pods, podclient.StopOptions{Progress: t.env.ErrOut}); err != nil {
		return err
	}
	if err := objects.DeleteWithPods(ctx, t.env, t.dirs, yielding); err != nil {
		return err
	}
	if err := r.StartInOrder(ctx, nil); err != nil {
		return r.Explain(err)
	}
	for _, p := range r.Started() {
		fmt.Fprintf(t.env.ErrOut, "pod/%s %s\n", p.Pod.Name, r.outcomes[p])
	}
	for _, w := range r.WorkloadRefs() {
		if err := controller.EnsureRunning(t.env, t.dirs, w); err != nil {
			return err
		}
	}
	return objects.DeleteWithPods(ctx, t.env, t.dirs, rest)
}

// yields reports whether a member is a Service with an address or a node port that another one is to have.
func (t *Transaction) yields(m store.SetMember, next []manifest.Object) bool {
	if m.Kind != pod.KindService {
		return false
	}
	old, err := t.dirs.Object(m.Kind, m.Namespace, m.Name)
	return err == nil && slices.ContainsFunc(next, func(o manifest.Object) bool { return o.Stored.Service != nil && o.Stored.Service.Clashes(old.Service) })
}

// awaitReady waits until all pods are ready and all workloads available or complete. It returns the status of the pods, in the
// order of the run, or the first failure.
func (t *Transaction) awaitReady(ctx context.Context, r *run, timeout time.Duration) ([]*pod.Status, error) {
	last := make([]*pod.Status, len(r.Targets))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		return controller.Await(ctx, t.env, t.dirs, r.WorkloadRefs(), controller.AwaitOptions{Ready: true, Ends: true})
	})
	for i, p := range r.Targets {
		all.Go(func() (err error) {
			last[i], err = follow.AwaitReady(ctx, t.env, p, timeout)
			return err
		})
	}
	return last, all.Wait()
}

// stayReady checks that all pods stay ready. last is their status when they were. It returns the first failure.
func (t *Transaction) stayReady(ctx context.Context, r *run, last []*pod.Status, stable time.Duration) error {
	all, ctx := errgroup.WithContext(ctx)
	for i, p := range r.Targets {
		all.Go(func() error { return follow.StaysReady(ctx, t.env, p.Pod, last[i], stable) })
	}
	for _, w := range r.WorkloadRefs() {
		v, err := resource.LoadWorkload(t.dirs, w)
		if err != nil {
			return err
		}
		for name, st := range v.Status {
			if st.Ready() {
				all.Go(func() error { return follow.StaysReady(ctx, t.env, v.StoredPods[name], st, stable) })
			}
		}
	}
	return all.Wait()
}
