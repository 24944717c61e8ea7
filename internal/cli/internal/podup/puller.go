package podup

import (
	"context"
	"fmt"
	"os"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/pull"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/store"
)

// loadRecorded returns the run of a recorded pod.
func loadRecorded(env *cmdutil.Env, dirs store.Dirs, p store.Pod, options cmdutil.PullerOptions, lock *os.File) (*Run, error) {
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return nil, err
	}
	text, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	old, err := manifest.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	object, err := manifest.LoadRecorded(text)
	if err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	up := &Target{Object: object, Pod: p, Plan: plan, Cluster: plan.Cluster, pull: options.Pull, Lock: lock, Step: upplan.Step{Resumed: &upplan.Resumption{UID: plan.UID, Created: old.CreationTimestamp.Time}}}
	if plan.InCluster() {
		dirs = dirs.OfCluster()
	}
	l := &Run{Env: env, Dirs: dirs, Launcher: launcher, RequireLimits: options.RequireLimits, ReportTo: env.ErrOut, Targets: []*Target{up}}
	l.Pull = image.PullOptions{TLSVerify: options.TLSVerify, AuthFile: options.AuthFile}
	return l, l.pinImages(up)
}

// PullPod pulls the images of a recorded pod, and starts it.
func PullPod(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, p store.Pod, options cmdutil.PullerOptions, lock *os.File) error {
	defer lock.Close()
	l, err := loadRecorded(env, dirs, p, options, lock)
	if err != nil {
		return err
	}
	defer l.Release()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	up := l.Targets[0]
	loop := l.pullLoop(func(error) bool { return true }, func(ctx context.Context) error { return l.tryStart(ctx, up) })
	if up.Pending, err = pull.NewPending(env, p, up.Plan, stop, l.pullRequests); err != nil {
		return err
	}
	if loop.Run(ctx) == nil {
		return nil
	}
	return l.EndPull(up) // only a client's stop ends the loop
}

// EndPull ends the wait of a pod that was stopped before it started. If the client removes the pod next,
// EndPull removes it at once, in case the client is killed.
func (r *Run) EndPull(p *Target) (err error) {
	defer p.Pending.Close()
	how := p.Pending.StopRequested()
	if how == nil {
		return nil
	}
	p.Pending.Leave(how)
	if how.Remove && !how.Shutdown {
		err = r.Launcher.Remove(p.Pod)
	}
	return err
}
