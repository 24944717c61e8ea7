package podup

import (
	"context"
	"errors"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// AddWorkloads adds workloads to the run, and one sample pod of each, for the images and objects that its
// pods need.
func (r *Run) AddWorkloads(objectsList []manifest.Object) error {
	var errs []error
	for i := range objectsList {
		o := &objectsList[i]
		if z := o.TimeZone(); z != "" {
			if _, err := time.LoadLocation(z); err != nil {
				errs = append(errs, report.New(report.Usage, "", "%s is not a manifest that podrun can run\n%w", o.File, o.UnknownTimeZone()))
			}
		}
		o.Stored.RequireLimits, o.Stored.TLSVerify = r.RequireLimits, r.Pull.TLSVerify
		if _, err := objects.Compare(r.Env, r.Dirs, o); err != nil {
			errs = append(errs, err)
		}
		sample := workloads.SamplePod(o)
		errs = append(errs, admission.AddPullSecrets(r.Dirs, r.Stored, sample.Pod))
		r.Samples = append(r.Samples, &Target{Object: sample})
	}
	r.Workloads = objectsList
	if len(objectsList) > 0 && r.LogLimited {
		errs = append(errs, report.New(report.Usage, "set podrun.dev/log-max-size and podrun.dev/log-max-files in the template's annotations", "--log-max-size and --log-max-files apply to Pods only: %s is a %s", resource.Location(&objectsList[0]), objectsList[0].Kind))
	}
	return errors.Join(errs...)
}

// WorkloadRefs returns the stored workloads of the run.
func (r *Run) WorkloadRefs() []store.Workload {
	var list []store.Workload
	for i := range r.Workloads {
		o := r.Workloads[i].Stored
		if w, err := r.Dirs.Workload(o.Kind, o.Namespace, o.Name); err == nil { // Stored has valid names only
			list = append(list, w)
		}
	}
	return list
}

// PodObjects returns the manifests of the run's pods.
func (r *Run) PodObjects() (list []manifest.Object) {
	for _, p := range r.Targets {
		list = append(list, *p.Object)
	}
	return list
}

// DeleteCreated removes the objects that an interrupted `podrun up` has created for its pods, unless one
// of the pods still runs.
func (r *Run) DeleteCreated(ctx context.Context) error {
	for _, p := range r.Targets {
		if p.RanBefore() {
			return nil
		}
	}
	var targets []kindnames.ObjectRef
	for _, o := range r.created {
		now, err := r.Dirs.Object(o.Kind, o.Namespace, o.Name)
		if err != nil || now.UID != o.UID || now.Revision != o.Revision {
			continue // it is gone, or another command has changed it
		}
		used, err := isReferredTo(r.Dirs, o)
		if err != nil {
			return err
		}
		if !used {
			targets = append(targets, kindnames.ObjectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
		}
	}
	return objects.DeleteWithPods(ctx, r.Env, r.Dirs, targets)
}

// isReferredTo reports whether a pod refers to an object. Services and NetworkPolicies do not count, because
// every pod may use them.
func isReferredTo(dirs store.Dirs, o *pod.Object) (bool, error) {
	if o.Kind.ConcernsServices() || o.Kind == pod.KindNamespace || o.Kind == pod.KindServiceAccount || o.Kind == pod.KindNetworkPolicy {
		return false, nil
	}
	p, err := objects.PodThatRefersTo(dirs, kindnames.ObjectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	return p != "", err
}

// ChangedObjects returns the objects that the run makes or changes.
func (r *Run) ChangedObjects() *cmdutil.ChangedObjects {
	m := &cmdutil.ChangedObjects{Dirs: r.Dirs}
	for _, list := range [][]manifest.Object{r.Stored, r.Workloads} {
		for _, o := range list {
			m.Names = append(m.Names, kindnames.Query{Kind: o.Stored.Kind, Names: []string{o.Stored.Name}, Namespace: o.Stored.Namespace})
		}
	}
	for _, p := range r.Targets {
		m.Names = append(m.Names, kindnames.Query{Kind: "", Names: []string{p.Pod.Name}, Namespace: p.Pod.Namespace})
	}
	return m
}
