package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// FinishInterrupted finishes the work of killed commands where the pods' own processes were killed too:
// it removes pods whose removal was requested, and starts recorded replacements.
func FinishInterrupted(env *cmdutil.Env, dirs store.Dirs) {
	pods, err := dirs.Pods()
	if err != nil {
		return // the command reports it
	}
	for _, p := range pods {
		if !p.RemovalInterrupted() {
			continue
		}
		if err := finishRemoval(env, dirs, p); err != nil {
			report.Print(env.ErrOut, err)
		}
	}
	pods, err = dirs.Replacements()
	if err != nil {
		report.Print(env.ErrOut, err)
	}
	for _, p := range pods {
		if err := finishReplacement(env, dirs, p); err != nil {
			report.Print(env.ErrOut, err)
		}
	}
}

func finishRemoval(env *cmdutil.Env, dirs store.Dirs, p store.Pod) error {
	lock, err := p.Lock()
	if err != nil {
		return nil // another process is removing it
	}
	defer lock.Close()
	if !p.Removing() {
		return nil
	}
	launcher, err := env.Deps.NewLauncher(dirs)
	if err != nil {
		return err
	}
	return launcher.Remove(p)
}

func finishReplacement(env *cmdutil.Env, dirs store.Dirs, p store.Pod) error {
	lock, err := dirs.LockReplacement(p)
	if err != nil {
		return err
	}
	defer lock.Close()
	if free, err := lock.TryExclusive(); err != nil || !free {
		return err
	}
	r, err := dirs.Replacement(p)
	if err != nil || r == nil {
		return err
	}
	if r.Failed != "" {
		return report.New(report.Failure, "podrun up retries it; podrun down "+p.Name+" discards it", "replacement of pod %s failed: %s", p.Name, r.Failed)
	}
	fmt.Fprintf(env.ErrOut, "podrun: finishing the replacement of pod %s: podrun up --replace was interrupted\n", p.Name)
	cmd := reexec.ReplacerCommand(dirs, p, lock, nil)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("replace pod %s: %w", p.Name, err)
	}
	return cmd.Process.Release()
}

// LookAfter does what has to be done for pods and workloads whatever command runs: it restarts controllers that were
// killed since boot, and takes up pods that have lost their runtime directories, unless the command ends pods.
// Controllers of an earlier boot wait for the next `podrun up`, or for their units.
func LookAfter(ctx context.Context, env *cmdutil.Env, dirs store.Dirs, endsPods bool) {
	if !endsPods {
		if _, err := podclient.RecoverLost(ctx, dirs, env.ErrOut); err != nil {
			report.Print(env.ErrOut, err)
		}
	}
	list, err := dirs.Workloads("", pod.Workloads()...)
	if err != nil {
		return // commands that list workloads report it
	}
	for _, w := range list {
		if !w.ControllerKilled() {
			continue
		}
		v, err := resource.LoadWorkload(dirs, w)
		if err != nil || v.Object.Owner != nil || v.Decide(time.Now()).Done {
			continue
		}
		if err := EnsureRunning(env, dirs, w); err != nil {
			report.Print(env.ErrOut, err)
		}
	}
}
