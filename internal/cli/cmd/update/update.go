// Package update has the command update.
package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/imagegc"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/podset"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/build"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// NewCommand returns the command update.
func NewCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "update",
		Usage:     "update pods to newer images, and roll back if they fail",
		ArgsUsage: "[POD...]",
		Description: `Checks the registries for newer images of the names in the pods' manifests. If
there are any, it pulls them, stops the pod, creates it again and watches it: if
it is not ready in time, or does not stay ready, the pod is created with its
former images. Tags are moved to the new images only when the pod is ready, so
after a power cut the pod is resumed with the old ones. Without arguments it
updates all pods of the namespace, one after the other. A pod of a systemd unit
is updated by a restart of the unit, with the other pods of the unit. Pods of a
Deployment or another workload are not updated: a changed template creates them
again, with the newest images.

For a name that no registry has, such as a loaded image's, it uses the
image that now has the name on this machine: load the new archive, then update.
Images by digest stay. --rollback restores the images from before the last
update.

An image with which a pod has failed is not tried again by a run for all pods,
as by a timer, until the registry has another one: name the pod, or use --retry.
A registry is asked once for each name, by HEAD, which is not counted as a pull.

Examples:
  podrun update
  podrun update web --timeout 2m
  podrun update web --rollback
  podrun update --auto
  podrun update --pull never web
`,
		Flags: []cli.Flag{
			cmdutil.NamespaceFlag(),
			&cli.BoolFlag{Name: "auto", Usage: "only pods and containers with podman's annotation io.containers.autoupdate, or up --auto-update"},
			&cli.BoolFlag{Name: "rollback", Usage: "restore the images from before the last update"},
			&cli.BoolFlag{Name: "retry", Usage: "also try images with which a pod has failed before, or was rolled back"},
			&cli.DurationFlag{Name: "timeout", Value: podset.DefaultTimeout, Usage: "wait this `DURATION` for a pod to be ready (90s, 5m)"},
			&cli.DurationFlag{Name: "stable", Value: podset.DefaultStable, Usage: "the pod must stay ready without a restart for this `DURATION`"},
			&cli.StringFlag{Name: "pull", Value: "newer", Usage: "`WHEN` to check registries: newer or never"},
			cmdutil.TLSVerifyFlag(),
		},
		Action: cmdutil.Action(func() cmdutil.Command { return &updater{env: env} }),
	}
}

// updater is one run of the command.
type updater struct {
	env             *cmdutil.Env
	names           []string // all pods of the namespace if empty
	namespace       string
	pull            image.PullOptions
	pullWord        string // newer or never
	rollback, auto  bool
	retry           bool // also images whose pods have failed
	timeout, stable time.Duration

	dirs  store.Dirs
	store *image.Store
	asked map[string]newestImage // by reference
}

// Complete reads the command line.
func (u *updater) Complete(c *cli.Context) error {
	u.names, u.namespace = c.Args().Slice(), c.String("namespace")
	u.env.Pull = u.env.RegistryOptions(c)
	u.pull, u.pullWord, u.rollback, u.auto = u.env.Pull, c.String("pull"), c.Bool("rollback"), c.Bool("auto")
	u.retry, u.asked = c.Bool("retry") || len(u.names) > 0, map[string]newestImage{}
	u.timeout, u.stable = c.Duration("timeout"), c.Duration("stable")
	return nil
}

// Validate checks the options.
func (u *updater) Validate() error {
	switch {
	case u.timeout <= 0 || u.stable < 0:
		return cmdutil.UsageErrorf("update", "--timeout and --stable must not be negative, and --timeout not 0")
	case u.pullWord != "newer" && u.pullWord != "never":
		return cmdutil.UsageErrorf("update", "--pull must be newer or never, not %q", u.pullWord)
	case u.auto && (u.rollback || len(u.names) > 0):
		return cmdutil.UsageErrorf("update", "--auto selects the pods: it takes no names and no --rollback")
	case u.rollback && len(u.names) == 0:
		return cmdutil.UsageErrorf("update", "--rollback requires the names of pods")
	}
	return cmdutil.CheckAuthFile(u.pull)
}

// Run updates the pods, one group after the other.
func (u *updater) Run(ctx context.Context) (err error) {
	if u.dirs, err = u.env.Preflight(ctx, false); err != nil {
		return err
	}
	if u.store, err = cmdutil.OpenImages(u.dirs); err != nil {
		return err
	}
	groups, err := u.groups()
	if err != nil {
		return err
	}
	signals, stop := u.env.Signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cmdutil.Interruptible(ctx, signals, func(ctx context.Context) error {
		errs := []error{imagegc.Collect(u.env, u.dirs, u.store)}
		for _, g := range groups {
			if ctx.Err() != nil {
				break
			}
			errs = append(errs, u.group(ctx, g))
		}
		return errors.Join(errs...)
	})
}

// updateGroup is a set of pods that are updated together: one pod, or all pods of a unit.
type updateGroup struct {
	unit string // "" if there is none
	pods []*updatedPod
}

// setName returns the name of the set of the group's pods.
func (g *updateGroup) setName() string {
	if g.unit != "" {
		return store.UnitSet(g.unit)
	}
	return store.PodSet(g.pods[0].pod)
}

// updatedPod is one pod of an update.
type updatedPod struct {
	pod    store.Pod
	object *manifest.Object
	images []imageChange // the images that change

	rejected []string // the images with which the pod has failed
}

// groups returns the groups of the selected pods.
func (u *updater) groups() ([]*updateGroup, error) {
	var pods []store.Pod
	var errs []error
	for _, word := range u.names {
		p, err := resource.ResolvePod(u.dirs, u.namespace, word)
		if err != nil {
			if strings.Contains(word, "/") {
				err = report.New(report.Failure, "podrun image pull IMAGE pulls the newer image; podrun rollout restart "+word+" creates the pods again", "update applies to pods only: %w", err)
			}
			errs = append(errs, err)
			continue
		}
		if !p.Exists() && !u.wasInterrupted(p) {
			errs = append(errs, resource.PodNotFound(u.dirs, p))
			continue
		}
		pods = append(pods, p)
	}
	if len(u.names) == 0 {
		var err error
		if pods, err = u.all(); err != nil {
			return nil, err
		}
	}
	var groups []*updateGroup
	for _, p := range resource.UniquePods(pods) {
		g := &updateGroup{pods: []*updatedPod{{pod: p}}}
		unit, err := u.dirs.UnitOf(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if unit == "" {
			groups = append(groups, g)
			continue
		}
		if slices.ContainsFunc(groups, func(o *updateGroup) bool { return o.unit == unit }) {
			continue
		}
		g = &updateGroup{unit: unit}
		all, err := u.dirs.UnitPods(unit)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, p := range all {
			g.pods = append(g.pods, &updatedPod{pod: p})
		}
		groups = append(groups, g)
	}
	return groups, errors.Join(errs...)
}

// all returns the running pods of the namespace that have no owner, and pods that do not exist because a
// power failure has interrupted their update.
func (u *updater) all() ([]store.Pod, error) {
	pods, err := resource.ListPods(u.dirs, u.namespace, false)
	if err != nil {
		return nil, err
	}
	var makers []string
	pods = slices.DeleteFunc(pods, func(p store.Pod) bool {
		k, err := resource.LoadPod(p)
		if err != nil {
			return false
		}
		by := workloads.ControllerOf(k.Manifest)
		if by != nil {
			makers = append(makers, strings.ToLower(string(by.Owner.Kind))+" "+by.Owner.Name)
		}
		return by != nil || !p.Alive() || u.auto && !podutil.HasAutoUpdate(k.Manifest)
	})
	slices.Sort(makers)
	for _, maker := range slices.Compact(makers) {
		fmt.Fprintf(u.env.ErrOut, "podrun: the pods of %s are not updated: a changed template creates them again, with the newest images\n", maker)
	}
	gone, err := u.interruptedPods()
	if err != nil {
		return nil, err
	}
	pods = append(pods, gone...)
	switch {
	case len(pods) == 0 && u.auto:
		fmt.Fprintf(u.env.ErrOut, "podrun: no pod of namespace %s has the annotation %s: there is nothing to update\n", report.Escape(u.namespace), podutil.AnnotationAutoUpdate)
	case len(pods) == 0 && len(makers) == 0:
		fmt.Fprintf(u.env.ErrOut, "podrun: no pod runs in namespace %s: there is nothing to update\n", report.Escape(u.namespace))
	}
	return pods, nil
}

// interruptedPods returns the pods of the namespace that do not exist because their update was interrupted.
func (u *updater) interruptedPods() (pods []store.Pod, err error) {
	names, err := u.dirs.UpdateSets()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := u.dirs.Set(name)
		if err != nil {
			return nil, err
		}
		if s == nil || s.State == store.SetSettled {
			continue
		}
		for _, m := range s.Current.Members {
			if p := u.dirs.Pod(m.Namespace, m.Name); name == store.PodSet(p) && m.Namespace == u.namespace && !p.Exists() {
				pods = append(pods, p)
			}
		}
	}
	return pods, nil
}

// wasInterrupted reports whether the last update of a pod was interrupted.
func (u *updater) wasInterrupted(p store.Pod) bool {
	_, s, err := u.dirs.UpdateOf(p)
	return err == nil && s != nil && s.State != store.SetSettled
}

// group updates the pods of a group.
func (u *updater) group(ctx context.Context, g *updateGroup) error {
	o := podset.Options{Name: g.setName(), Timeout: u.timeout, Stable: u.stable}
	if g.unit != "" {
		o.Restart = func(ctx context.Context) error { return u.restart(ctx, g.unit) }
	}
	t, err := podset.Begin(u.env, o)
	if err != nil {
		return err
	}
	defer t.Close()
	stale := !g.pods[0].pod.Exists()
	if err := t.Finish(ctx); err != nil {
		return err
	}
	if stale {
		fmt.Fprintf(u.env.Out, "pod/%s created again: its last update was interrupted\n", g.pods[0].pod.Name)
		return nil
	}
	hold, err := u.store.Lease() // fetched images have no names yet
	if err != nil {
		return err
	}
	defer hold.Close()
	for _, p := range g.pods {
		err := u.load(p)
		if err == nil {
			err = u.findChanges(ctx, p, t.Record())
		}
		if err != nil {
			return fmt.Errorf("update pod %s: %w", p.pod.Name, err)
		}
		for _, ref := range p.rejected {
			fmt.Fprintf(u.env.ErrOut, "podrun: pod %s: its last update to the newest %s was rolled back; podrun update %s tries it again\n", p.pod.Name, report.Escape(ref), p.pod.Name)
		}
	}
	if slices.ContainsFunc(g.pods, func(p *updatedPod) bool { return len(p.images) > 0 }) {
		return u.try(ctx, t, g)
	}
	for _, p := range g.pods {
		if len(p.rejected) > 0 {
			fmt.Fprintf(u.env.Out, "pod/%s not updated\n", p.pod.Name)
			continue
		}
		fmt.Fprintf(u.env.Out, "pod/%s is up to date\n", p.pod.Name)
	}
	return nil
}

// load reads a pod's manifest.
func (u *updater) load(p *updatedPod) error {
	text, err := p.pod.Manifest()
	if err == nil {
		p.object, err = restoreManifest(text)
	}
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	return nil
}

// restoreManifest returns a pod's manifest without its ephemeral containers and the system fields that
// podrun has set.
func restoreManifest(text []byte) (*manifest.Object, error) {
	text, err := build.RemoveEphemeralContainers(text)
	if err != nil {
		return nil, err
	}
	pod, err := manifest.Unmarshal(text)
	if err != nil {
		return nil, err
	}
	if by := workloads.ControllerOf(pod); by != nil {
		return nil, report.New(report.Failure, "podrun rollout restart KIND/NAME creates its pods again, with the newest images", "it is controlled by %s %s", strings.ToLower(string(by.Owner.Kind)), by.Owner.Name)
	}
	podutil.ClearSystemFields(pod)
	if text, err = manifest.Marshal(pod); err != nil {
		return nil, err
	}
	docs, err := resource.Load([]resource.Source{{Name: "the stored manifest", Data: text}})
	if err != nil {
		return nil, err
	}
	if len(docs.Pods) != 1 {
		return nil, errors.New("there is no pod in it")
	}
	return &docs.Pods[0], nil
}
