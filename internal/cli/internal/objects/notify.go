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

// notifyPod notifies one pod of the objects that it refers to.
func notifyPod(ctx context.Context, p store.Pod, changed []*pod.Object) error {
	if !p.Alive() {
		return nil
	}
	plan, err := p.Plan()
	if err != nil {
		return nil // it is being created or removed
	}
	ctx, cancel := context.WithTimeout(ctx, podclient.NotifyTime)
	defer cancel()
	for _, o := range changed {
		// The labels of any namespace may occur in the policies of any pod.
		if o.Kind != pod.KindNamespace && (o.Namespace != p.Namespace || !plan.Refers(o.Kind, o.Name)) {
			continue
		}
		req := wire.Request{Verb: wire.Changed, Changed: &wire.ChangedRequest{Kind: o.Kind, Name: o.Name}}
		if err := podclient.Request(ctx, p, req); err != nil && p.Alive() {
			return err
		}
	}
	return nil
}
