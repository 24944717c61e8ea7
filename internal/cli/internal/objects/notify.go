package objects

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
)

// NotifyPods notifies running pods of changed objects that they refer to, so that pods need not poll. If
// a pod cannot be notified, or cannot enforce a policy, that is reported but not an error: the pod reads the
// objects when it starts a container, and the policies at the next change.
func NotifyPods(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, changed []*pod.Object) {
	changed = slices.DeleteFunc(slices.Clone(changed), func(o *pod.Object) bool {
		return o.Kind == pod.KindNamespace && !dirs.HadNetworkPolicies()
	})
	if len(changed) == 0 {
		return
	}
	pods, err := dirs.Pods()
	if err != nil {
		report.Print(env.ErrOut, err)
		return
	}
	var all sync.WaitGroup
	failed := make([]error, len(pods))
	for i, p := range pods {
		all.Go(func() { failed[i] = notifyPod(ctx, p, changed) })
	}
	all.Wait()
	for i, err := range failed {
		if err != nil {
			fmt.Fprintf(env.ErrOut, "podrun: warning: cannot notify pod %s of the change: %s\n", pods[i].Name, report.Escape(err.Error()))
		}
	}
}

// NotifyOfServices notifies running pods of changed Services: those whose node ports the Services may open, and at
// least one pod, which changes the router's rules for all pods. If no pod can be notified, the next one that starts
// changes them.
func NotifyOfServices(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, changed []*pod.Object) {
	if len(changed) == 0 {
		return
	}
	pods, err := dirs.Pods()
	if err != nil {
		report.Print(env.ErrOut, err)
		return
	}
	opens := map[string]bool{}
	for _, o := range changed {
		opens[o.Namespace] = opens[o.Namespace] || o.Service.Type.OpensPorts()
	}
	done := false
	for _, all := range []bool{true, false} { // all pods of these namespaces, and one of the others if need be
		for _, p := range pods {
			if opens[p.Namespace] == all && (all || !done) && hasRouter(p) {
				done = requestChanged(ctx, p, changed[0]) == nil || done
			}
		}
	}
}

// hasRouter reports whether a pod is running and connected to the router.
func hasRouter(p store.Pod) bool {
	_, err := p.Endpoint() // it is published once the pod is connected, and then the pod reads the Services
	return err == nil && p.Alive()
}

// notifyPod notifies one pod of the objects that it refers to.
func notifyPod(ctx context.Context, p store.Pod, changed []*pod.Object) error {
	if !p.Alive() {
		return nil
	}
	plan, err := p.Plan()
	if err != nil {
		return nil // it is being created or removed
	}
	for _, o := range changed {
		if !concerns(o, p, plan) {
			continue
		}
		if err := requestChanged(ctx, p, o); err != nil && p.Alive() {
			return err
		}
	}
	return nil
}

// concerns reports whether a pod is notified of a changed object. The labels of any namespace may occur in the policies
// of any pod. The router has the policies and the Services of all pods.
func concerns(o *pod.Object, p store.Pod, plan *pod.Plan) bool {
	if o.Kind == pod.KindNamespace {
		return true
	}
	shared := o.Kind.ConcernsServices() || o.Kind == pod.KindNetworkPolicy
	return o.Namespace == p.Namespace && (shared || o.IsFromCluster() == plan.InCluster()) && plan.Refers(o.Kind, o.Name)
}

// requestChanged notifies a pod of a changed object.
func requestChanged(ctx context.Context, p store.Pod, o *pod.Object) error {
	ctx, cancel := context.WithTimeout(ctx, podclient.NotifyTime)
	defer cancel()
	return podclient.Request(ctx, p, wire.Request{Verb: wire.Changed, Changed: &wire.ChangedRequest{Kind: o.Kind, Name: o.Name}})
}
