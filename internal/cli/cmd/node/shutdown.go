package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// reportTime is how long the API server may take to learn that the node is shutting down.
const reportTime = 10 * time.Second

// shutDown ends the node with the machine, if that is why podrun node ends: the cluster reads that the node is not
// ready, and the node's pods end within their grace periods. The next podrun node resumes them, as a kubelet without
// shutdownGracePeriod does: a pod that has failed for the API server could not run again.
func shutDown(ctx context.Context, agent *node.Agent, dirs store.Dirs) error {
	if !cmdutil.ShuttingDown(ctx, agent.ErrOut) {
		return nil
	}
	var all sync.WaitGroup
	all.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, reportTime)
		defer cancel()
		if err := agent.ReportShutdown(ctx); err != nil {
			report.Print(agent.ErrOut, err)
		}
	})
	pods := agent.List()
	errs := make([]error, len(pods))
	for i, p := range pods {
		if local, err := agent.Engine.Find(p.Namespace, p.Name); err != nil || local == nil || local.UID != p.UID {
			errs[i] = err
			continue
		}
		all.Go(func() { errs[i] = podclient.Shutdown(ctx, dirs.Pod(p.Namespace, p.Name), nil) })
	}
	all.Wait()
	return errors.Join(errs...)
}
