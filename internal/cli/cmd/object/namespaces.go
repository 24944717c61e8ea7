package object

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/podrun/podrun/internal/cli/controller"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// deleteNamespaces deletes namespaces with their contents: workloads, then pods, then the objects that
// pods refer to.
func (o *deleteOptions) deleteNamespaces(ctx context.Context, targets []kindnames.ObjectRef) error {
	var errs []error
	for _, t := range targets {
		switch _, err := resource.FindNamespace(o.dirs, t.Name); {
		case t.Name == podclient.DefaultNamespace:
			errs = append(errs, report.New(report.Failure, "podrun get all,cm,secrets,pvc lists what is in it", "cannot delete namespace %s: it always exists", t.Name))
		case err != nil && o.ignoreNotFound && errors.Is(o.missingObject(t), fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, o.deleteNamespace(ctx, t))
		}
	}
	return errors.Join(errs...)
}

// missingObject returns why an object cannot be read, or nil.
func (o *deleteOptions) missingObject(t kindnames.ObjectRef) error {
	_, err := o.dirs.Object(t.Kind, "", t.Name)
	if errors.Is(err, store.ErrBadName) {
		return fs.ErrNotExist
	}
	return err
}

func (o *deleteOptions) deleteNamespace(ctx context.Context, t kindnames.ObjectRef) error {
	launcher, err := o.env.Deps.NewLauncher(o.dirs)
	if err != nil {
		return err
	}
	for { // one deletion may remove others, such as the Jobs of a CronJob
		workloads, err := o.dirs.Workloads(t.Name, pod.Workloads()...)
		if err != nil {
			return err
		}
		if len(workloads) == 0 {
			break
		}
		w := workloads[len(workloads)-1]
		if err := controller.RemoveWorkload(ctx, o.env, o.dirs, launcher, w, o.how()); err != nil {
			return err
		}
		if err := o.deleted(kindnames.Of(w.Kind)+"/"+w.Name, true); err != nil {
			return err
		}
	}
	pods, err := o.dirs.Pods()
	if err != nil {
		return err
	}
	pods = slices.DeleteFunc(pods, func(p store.Pod) bool { return p.Namespace != t.Name })
	if err := o.deletePods(ctx, pods, true); err != nil {
		return err
	}
	var inside []kindnames.ObjectRef
	for _, k := range kindnames.All() {
		if k.Kind.ClusterScoped() {
			continue
		}
		list, err := o.dirs.Objects(k.Kind, t.Name)
		if err != nil {
			return err
		}
		for _, in := range list {
			inside = append(inside, kindnames.ObjectRef{Kind: k.Kind, Namespace: t.Name, Name: in.Name})
		}
	}
	if err := o.deleteObjects(ctx, inside); err != nil {
		return err
	}
	err = o.dirs.DeleteObject(pod.KindNamespace, "", t.Name)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // a namespace may be in use without being stored
		err = o.deleted("namespace/"+t.Name, false)
	}
	return err
}
