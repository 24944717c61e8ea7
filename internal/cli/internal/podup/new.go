package podup

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
)

// Options are the options of a Run, from a command line.
type Options struct {
	RequireLimits, Replace bool
	LogLimited             bool                // --log-max-size or --log-max-files
	RemoveAtEnd            bool                // the pods remove themselves when they have ended
	Policy                 string              // the level of the Pod Security Standards; "": the namespace's
	UnsafeSysctls          []string            // --allow-unsafe-sysctl
	Cluster                *pod.Cluster        // of the pods; nil: they are the user's
	Allocatable            corev1.ResourceList // of the cluster's node; nil: pods may use all that the machine has
	PullPolicy             string              // a key of PullPolicies; "": the manifests'
	Pull                   image.PullOptions
}

// New returns the Run of manifests. The error is the reason why this machine cannot run them.
func New(ctx context.Context, env *cmdutil.Env, preparation *cmdutil.Preparation, docs resource.Documents, o Options) (*Run, error) {
	dirs, err := preparation.Preflight(ctx, env, o.RequireLimits)
	if err != nil {
		return nil, err
	}
	if o.Cluster != nil {
		dirs = dirs.OfCluster()
	}
	if err := admission.AdmitManifests(env, dirs, docs, o.Policy, o.UnsafeSysctls); err != nil {
		return nil, err
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return nil, err
	}
	if err := cmdutil.CheckAuthFile(o.Pull); err != nil {
		return nil, err
	}
	r := &Run{Env: env, Preparation: preparation, Dirs: dirs, Launcher: launcher, RequireLimits: o.RequireLimits, Replace: o.Replace, Pull: o.Pull, Stored: docs.Stored, ReportTo: env.ErrOut}
	r.LogLimited, r.removeAtEnd, r.allocatable = o.LogLimited, o.RemoveAtEnd, o.Allocatable
	if err := r.AddWorkloads(docs.Workloads); err != nil {
		return nil, err
	}
	for i := range docs.Stored {
		if _, err := objects.Compare(env, dirs, &docs.Stored[i]); err != nil {
			return nil, err
		}
	}
	for i := range docs.Pods {
		p := &docs.Pods[i]
		r.Targets = append(r.Targets, &Target{Object: p, Cluster: o.Cluster, Pod: dirs.Pod(p.Pod.Namespace, p.Pod.Name), settled: make(chan struct{})})
	}
	if err := r.CheckOrder(); err != nil {
		return nil, err
	}
	env.Changed = r.ChangedObjects()
	r.PullAs(o.PullPolicy)
	return r, nil
}
