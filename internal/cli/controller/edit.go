package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/store"
)

// Edit changes a pod or a stored object by a change of its Kubernetes form (podup.Edit, objects.Edit), and
// ensures that a changed workload has a controller. changed reports whether the object differs.
func Edit(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, ref kindnames.ObjectRef, dryRun cmdutil.DryRun, change func(metav1.Object) error) (changed bool, err error) {
	if ref.Kind == "" {
		p, err := resource.ExistingPod(dirs, ref.Namespace, ref.Name)
		if err != nil {
			return false, err
		}
		return podup.Edit(ctx, env, p, dryRun, func(object *corev1.Pod) error { return change(object) })
	}
	changed, err = objects.Edit(env, dirs, ref, dryRun, change)
	if err != nil || !changed || dryRun != cmdutil.DryRunNone || !kindnames.IsWorkload(ref.Kind) {
		return changed, err
	}
	v, err := resource.FindWorkload(dirs, ref.Kind, ref.Namespace, ref.Name)
	if err != nil || v.Object.Owner != nil { // the controller of a CronJob also runs its Jobs
		return changed, err
	}
	return changed, EnsureRunning(env, dirs, v.Workload)
}
