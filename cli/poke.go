package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// tellTime is how long a supervisor may take to hear of a changed object: one that dozes
// has to be begun first.
const tellTime = 10 * time.Second

// tellPods tells living pods of objects that are not what they were, if they refer to
// them, so that nobody has to look again and again. A pod that cannot be told is said,
// and no failure: it looks when it starts a container.
func (f *front) tellPods(ctx context.Context, dirs store.Dirs, changed []*pod.Object) {
	if len(changed) == 0 {
		return
	}
	places, err := dirs.Pods()
	if err != nil {
		report.Print(f.err, err)
		return
	}
	var all sync.WaitGroup
	failed := make([]error, len(places))
	for i, p := range places {
		all.Go(func() { failed[i] = tellPod(ctx, p, changed) })
	}
	all.Wait()
	for i, err := range failed {
		if err != nil {
			fmt.Fprintf(f.err, "podrun: warning: pod %s has not heard of the change: %s\n", places[i].Name, report.Escape(err.Error()))
		}
	}
}

// tellPod tells one pod of the objects that it refers to.
func tellPod(ctx context.Context, p store.Pod, changed []*pod.Object) error {
	if !p.Alive() {
		return nil
	}
	plan, err := p.Plan()
	if err != nil {
		return nil // it is being made or removed
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	for _, o := range changed {
		if o.Namespace != p.Namespace || !plan.Refers(o.Kind, o.Name) {
			continue
		}
		req := wire.Request{Verb: wire.Changed, Changed: &wire.ChangedRequest{Kind: o.Kind, Name: o.Name}}
		if err := remote.Persist(ctx, p, func() error { return tellOnce(ctx, p, req) }); err != nil && p.Alive() {
			return err
		}
	}
	return nil
}

func tellOnce(ctx context.Context, p store.Pod, req wire.Request) error {
	conn, err := remote.Ask(ctx, p, req)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	frame, _, err := wire.ReadFrame(conn)
	switch {
	case err != nil:
		return err
	case frame.Error != nil:
		return wireError(frame.Error)
	}
	return nil
}
