package cli

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
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/workloads"
)

// updateTime is how long a pod may take to be ready, unless the user says so; back at its old
// images it has as long, whatever the user says.
const updateTime = 5 * time.Minute

func (f *front) updateCommand() *cli.Command {
	return &cli.Command{
		Name:      "update",
		Usage:     "take newer images of pods, and go back if they fail",
		ArgsUsage: "[POD...]",
		Description: `Asks the registries whether the names of the pods' images stand for newer ones.
Where they do, it fetches them, stops the pod, makes it anew and watches it: if
it is not ready in time, or does not stay so, the pod is made of the images that
it had before. Only when it is ready the names stand for the new images, so
after a power cut in the middle the pod comes back with the old ones. Without
names it does so for all pods of the namespace, one after the other. A pod of a
systemd unit is updated by a restart of the unit, with the other pods of it.
Those of a Deployment or another workload are left to it: a changed template
makes them anew, of the newest images.

Of a name that no registry has, as of images that were loaded from an archive,
it takes what the name stands for on this machine: load the new archive, then
update. Images by digest stay. --rollback goes back to what the pod had before
its last update.

Examples:
  podrun update
  podrun update web --timeout 2m
  podrun update web --rollback
  podrun update --pull never web
`,
		Flags: []cli.Flag{
			namespaceFlag(),
			&cli.BoolFlag{Name: "rollback", Usage: "go back to the images before the last update"},
			&cli.DurationFlag{Name: "timeout", Value: updateTime, Usage: "how long a pod may take to be ready, as a `DURATION` (90s, 5m)"},
			&cli.DurationFlag{Name: "stable", Value: 10 * time.Second, Usage: "how long it has to stay ready without a restart, as a `DURATION`"},
			&cli.StringFlag{Name: "pull", Value: "newer", Usage: "`WHEN` registries are asked: newer or never"},
			tlsVerifyFlag(),
		},
		Action: f.update,
	}
}

// updating is one command.
type updating struct {
	front    *front
	dirs     store.Dirs
	keeper   pods
	store    *image.Store
	pull     image.PullOptions
	ask      bool // registries
	rollback bool
	timeout  time.Duration
	stable   time.Duration
}

func (f *front) update(c *cli.Context) error {
	u := &updating{front: f, rollback: c.Bool("rollback"), timeout: c.Duration("timeout"), stable: c.Duration("stable"), ask: c.String("pull") == "newer"}
	switch {
	case u.timeout <= 0 || u.stable < 0:
		return usageErrorf("update", "--timeout and --stable must not be negative, and --timeout not 0")
	case !u.ask && c.String("pull") != "never":
		return usageErrorf("update", "--pull is newer or never, not %q", c.String("pull"))
	case u.rollback && !c.Args().Present():
		return usageErrorf("update", "--rollback takes the names of pods")
	}
	var err error
	if u.pull, err = f.pullOptions(c); err != nil {
		return err
	}
	if u.dirs, err = f.able(c.Context, false); err != nil {
		return err
	}
	if u.keeper, err = f.rooms.pods(u.dirs); err != nil {
		return err
	}
	if u.store, err = openImages(u.dirs); err != nil {
		return err
	}
	groups, err := u.groups(c)
	if err != nil {
		return err
	}
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return interruptible(c.Context, signals, func(ctx context.Context) error {
		errs := []error{f.makeRoom(u.dirs, u.store)}
		for _, g := range groups {
			if ctx.Err() != nil {
				break
			}
			errs = append(errs, u.group(ctx, g))
		}
		return errors.Join(errs...)
	})
}

// updateGroup are the pods that are updated as one: a pod, or all those of a unit.
type updateGroup struct {
	unit string // "" if there is none
	pods []*updatedPod
}

// updatedPod is one of them.
type updatedPod struct {
	place  store.Pod
	record *store.Update // of the update before; nil: there was none
	stale  bool          // which was cut off
	object *manifest.Object
	images []store.UpdatedImage // that change

	manifest []byte // of one without a unit, for the record while the pod may be gone
}

// groups are those of the pods that the user means.
func (u *updating) groups(c *cli.Context) ([]*updateGroup, error) {
	var places []store.Pod
	var errs []error
	for _, word := range c.Args().Slice() {
		p, err := place(u.dirs, c.String("namespace"), word)
		if err != nil {
			if strings.Contains(word, "/") {
				err = report.New(report.Failure, "podrun image pull IMAGE fetches the newer image; a changed template, as with an annotation of today, makes new pods of it", "update is for pods: %w", err)
			}
			errs = append(errs, err)
			continue
		}
		if last, err := u.dirs.Update(p); !p.Exists() && (err != nil || last == nil || last.Manifest == nil) {
			errs = append(errs, noPod(u.dirs, p))
			continue
		}
		places = append(places, p)
	}
	if !c.Args().Present() {
		var err error
		if places, err = u.all(c.String("namespace")); err != nil {
			return nil, err
		}
	}
	var groups []*updateGroup
	for _, p := range unique(places) {
		g := &updateGroup{pods: []*updatedPod{{place: p}}}
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
			g.pods = append(g.pods, &updatedPod{place: p})
		}
		groups = append(groups, g)
	}
	return groups, errors.Join(errs...)
}

// all are the pods of a namespace that run and that nothing makes, and those whose update
// a power cut has ended when they were gone.
func (u *updating) all(namespace string) ([]store.Pod, error) {
	places, err := listed(u.dirs, namespace, false)
	if err != nil {
		return nil, err
	}
	var makers []string
	places = slices.DeleteFunc(places, func(p store.Pod) bool {
		k, err := know(p)
		if err != nil {
			return false
		}
		by := workloads.ControllerOf(k.manifest)
		if by != nil {
			makers = append(makers, strings.ToLower(string(by.Owner.Kind))+" "+by.Owner.Name)
		}
		return by != nil || !p.Alive()
	})
	slices.Sort(makers)
	for _, maker := range slices.Compact(makers) {
		fmt.Fprintf(u.front.err, "podrun: the pods of %s are left to it: a changed template makes them anew, of the newest images\n", maker)
	}
	last, err := u.dirs.Updates()
	if err != nil {
		return nil, err
	}
	for key, r := range last {
		if p := u.dirs.Pod(key[0], key[1]); key[0] == namespace && r.Manifest != nil && !p.Exists() {
			places = append(places, p)
		}
	}
	if len(places) == 0 && len(makers) == 0 {
		fmt.Fprintf(u.front.err, "podrun: no pod runs in namespace %s: there is nothing to update\n", report.Escape(namespace))
	}
	return places, nil
}

// group updates the pods of a group.
func (u *updating) group(ctx context.Context, g *updateGroup) error {
	for _, p := range g.pods {
		lock, err := u.dirs.LockUpdate(p.place)
		if err != nil {
			return err
		}
		defer lock.Close()
		if alone, err := lock.TryExclusive(); err != nil || !alone {
			return errors.Join(err, report.New(report.Failure, "try again when that is done", "pod %s is being updated by another podrun", p.place.Name))
		}
		if err := u.look(p); err != nil {
			return err
		}
	}
	hold, err := u.store.Lease() // what is fetched has no name yet
	if err != nil {
		return err
	}
	defer hold.Close()
	changes := false
	for _, p := range g.pods {
		if err := u.choose(ctx, p); err != nil {
			return fmt.Errorf("update pod %s: %w", p.place.Name, err)
		}
		changes = changes || len(p.images) > 0 || p.stale
	}
	if !changes {
		for _, p := range g.pods {
			fmt.Fprintf(u.front.out, "pod/%s is up to date\n", p.place.Name)
		}
		return nil
	}
	return u.try(ctx, g)
}

// look reads what a pod is.
func (u *updating) look(p *updatedPod) (err error) {
	if p.record, err = u.dirs.Update(p.place); err != nil {
		return err
	}
	text, err := p.place.Manifest()
	if err != nil && p.record != nil && p.record.Manifest != nil {
		text, err = p.record.Manifest, nil
		p.stale = true
	}
	if err != nil {
		return err
	}
	p.object, err = restored(text)
	if err != nil {
		return fmt.Errorf("read manifest of pod %s: %w", p.place.Name, err)
	}
	return nil
}
