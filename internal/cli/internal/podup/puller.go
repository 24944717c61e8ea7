package podup

import (
	"context"
	"fmt"
	"os"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
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
	up := &Target{Object: object, Pod: p, Plan: plan, Cluster: plan.Cluster, pull: options.Pull, Lock: lock, Resumed: &Resumption{plan.UID, old.CreationTimestamp.Time}}
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
	if up.Puller, err = NewPending(env, p, up.Plan, stop); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		err := l.tryStart(ctx, up)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return l.EndPull(up)
		}
		if requested, _ := up.Puller.Sleep(ctx, 0); requested { // requested since this attempt began
			attempt = -1
			continue
		}
		wait := env.PullBackOff(attempt)
		if image.Reason(err) == image.ErrImageNeverPull {
			wait = env.PullBackOff(0) // no registry is involved
		}
		l.Failed(up, err, wait)
		if l.waitForRetry(ctx, wait, up) {
			attempt = -1
		}
	}
}

// EndPull ends the wait of a pod that was stopped before it started. If the client removes the pod next,
// EndPull removes it at once, in case the client is killed.
func (r *Run) EndPull(p *Target) (err error) {
	defer p.Puller.Close()
	how := p.Puller.StopRequested()
	if how == nil {
		return nil
	}
	p.Puller.leave(how)
	if how.Remove && !how.Shutdown {
		err = r.Launcher.Remove(p.Pod)
	}
	return err
}
