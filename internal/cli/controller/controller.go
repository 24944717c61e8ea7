// Package controller carries out the decisions of package workload: it creates and removes the pods of
// Deployments, Jobs and other workloads. A controller runs in podrun up, in a systemd unit, or in a
// process of its own.
package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/sleep"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/internal/workload"
)

// Controller carries out the decisions for workloads. It holds their locks.
type Controller struct {
	env       *cmdutil.Env
	dirs      store.Dirs
	launcher  cmdutil.PodLauncher
	roots     []store.Workload
	OnStarted func(*podup.Target) // called for every pod that was started

	// OnCreate, if set, is called before a pod is created, to connect it to its systemd unit.
	OnCreate func(*podup.Target) error

	mu       sync.Mutex
	removing map[store.Pod]bool
	grace    *int64 // for pods that are removed; nil: their own
	wakePipe [2]int // a pipe, written to after events that change no watched file
	reported map[string]string
}

// New returns a controller of workloads, whose locks the caller holds. The caller has to close it.
func New(env *cmdutil.Env, dirs store.Dirs, launcher cmdutil.PodLauncher, roots []store.Workload) (*Controller, error) {
	c := &Controller{env: env, dirs: dirs, launcher: launcher, roots: roots, removing: map[store.Pod]bool{}, reported: map[string]string{}}
	if err := unix.Pipe2(c.wakePipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return c, nil
}

func (c *Controller) Close() {
	unix.Close(c.wakePipe[0])
	unix.Close(c.wakePipe[1])
}

// wake makes a waiting controller reconcile again.
func (c *Controller) wake() { unix.Write(c.wakePipe[1], []byte{1}) } // fails if a byte is already in the pipe

// pass is the result of one pass over all workloads.
type pass struct {
	acted, busy bool
	wake        time.Time
	left        []store.Workload // workloads that still need a controller
	watch       *store.Watch     // wakes the controller for the next pass
}

// reconcile carries out for every workload what is due now. It starts each watch before it reads the
// watched files.
func (c *Controller) reconcile(ctx context.Context) (r pass, err error) {
	if r.watch, err = store.NewWatch(); err != nil {
		return r, err
	}
	for _, w := range c.roots {
		again, err := c.reconcileWorkload(ctx, w, &r)
		if err != nil {
			c.reportOnce(w, err)
			r.wakeAt(time.Now().Add(retryTime))
			again = true
		}
		if again {
			r.left = append(r.left, w)
		}
	}
	c.mu.Lock()
	r.busy = len(c.removing) > 0
	c.mu.Unlock()
	return r, nil
}

// retryTime is how long to wait after a pass that has failed.
const retryTime = 10 * time.Second

func (p *pass) wakeAt(t time.Time) {
	if !t.IsZero() && (p.wake.IsZero() || t.Before(p.wake)) {
		p.wake = t
	}
}

// reportOnce reports an error of a workload once.
func (c *Controller) reportOnce(w store.Workload, err error) {
	key := string(w.Kind) + "/" + w.Name
	if c.reported[key] != err.Error() {
		c.reported[key] = err.Error()
		report.Print(c.env.ErrOut, err)
	}
}

// reconcileWorkload carries out for one workload what is due now. again reports whether the workload still
// needs a controller.
func (c *Controller) reconcileWorkload(ctx context.Context, w store.Workload, r *pass) (again bool, err error) {
	if err := r.watch.Workload(w); err != nil {
		return true, err
	}
	v, err := c.loadWatched(ctx, w, r.watch)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	c.sweep(v)
	c.markRemoving(v)
	d := v.Decide(time.Now())
	r.wakeAt(d.Wake)
	for _, e := range d.State.Events.Events {
		if e.Seq > v.State.Events.Seq {
			fmt.Fprintf(c.env.ErrOut, "podrun: %s: warning: %s\n", v.Name(), e.Message)
		}
	}
	if !reflect.DeepEqual(d.State, v.State) {
		r.acted = true // waiting processes read the new state, and so does the next pass
		if err := w.WriteState(d.State); err != nil {
			return true, err
		}
	}
	d.Make = slices.DeleteFunc(d.Make, func(m workload.Make) bool {
		if m.Name == "" || !c.beingRemoved(c.dirs.Pod(w.Namespace, m.Name)) {
			return false
		}
		r.wakeAt(time.Now().Add(removalPoll))
		return true
	})
	if len(d.Make) > 0 {
		r.acted = true
		if err := c.makePods(ctx, v, &d); err != nil {
			return true, err
		}
	}
	for _, name := range d.Remove {
		c.remove(v.StoredPods[name])
	}
	if err := c.jobs(ctx, v, &d, r); err != nil {
		return true, err
	}
	if err := c.removeClaims(v, d.Delete); err != nil {
		return true, err
	}
	if d.Delete {
		return false, c.removeRecord(w, v)
	}
	return !d.Done, nil
}

// removeRecord removes a workload whose pods are gone.
func (c *Controller) removeRecord(w store.Workload, v *resource.WorkloadInfo) error {
	if err := w.Remove(v.Object.UID); err != nil {
		return err
	}
	if c.OnStarted != nil {
		fmt.Fprintf(c.env.ErrOut, "podrun: %s is gone\n", v.Name())
	}
	return nil
}

// makePods creates pods concurrently, as `podrun up` does. It records why one cannot be created, and a
// later pass tries again.
func (c *Controller) makePods(ctx context.Context, v *resource.WorkloadInfo, d *workload.Decision) error {
	l := &podup.Run{Env: c.env, Dirs: c.dirs, Launcher: c.launcher, RequireLimits: v.Object.RequireLimits, Background: c.OnCreate == nil}
	l.Pull.TLSVerify = v.Object.TLSVerify
	defer l.Release()
	for _, m := range d.Make {
		i := slices.IndexFunc(d.State.Revisions, func(r workload.Revision) bool { return r.Name == m.Revision })
		if i < 0 {
			return fmt.Errorf("%s has no revision %q", v.Name(), m.Revision)
		}
		name := m.Name
		for name == "" || c.nameTaken(v.Object.Namespace, name) && m.Name == "" {
			name = workloads.PodNamePrefix(v.Object, m) + rand.String(5)
		}
		o, err := workloads.NewPod(v.Object, m, d.State.Revisions[i].Template, name)
		if err == nil {
			err = errors.Join(c.makeClaims(v, m), admission.AddPullSecrets(c.dirs, nil, o.Pod))
		}
		if err != nil {
			return err
		}
		l.Targets = append(l.Targets, &podup.Target{Object: o, Pod: c.dirs.Pod(o.Pod.Namespace, name)})
	}
	err := l.Prepare(ctx)
	for _, p := range l.Targets {
		if err == nil && c.OnCreate != nil {
			err = c.OnCreate(p)
		}
	}
	if err == nil {
		err = l.Start()
	}
	for _, p := range l.Targets {
		switch {
		case !p.Started:
			p.CloseNotify()
		case c.OnStarted != nil:
			c.OnStarted(p)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		delete(c.reported, string(v.Workload.Kind)+"/"+v.Workload.Name)
		d.State.RecordCreated()
	} else {
		c.reportOnce(v.Workload, fmt.Errorf("%s: cannot create its pods: %w", v.Name(), err))
		d.State.RecordCreateFailure(err.Error(), time.Now())
	}
	return v.Workload.WriteState(d.State)
}

func (c *Controller) nameTaken(namespace, name string) bool {
	return c.dirs.Pod(namespace, name).HasRemains()
}

// remove stops and removes a pod in the background.
func (c *Controller) remove(p store.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removing[p] {
		return
	}
	c.removing[p] = true
	grace := c.grace
	go func() {
		err := podclient.Stop(context.Background(), p, podclient.StopOptions{Grace: grace, Remove: c.launcher.Remove})
		if err != nil && p.HasRemains() {
			report.Print(c.env.ErrOut, err)
			_ = sleep.For(context.Background(), time.Second) // delays the next attempt
		}
		c.mu.Lock()
		delete(c.removing, p)
		c.mu.Unlock()
		c.wake()
	}()
}

// StopNow ends the grace period of the pods that are being removed, now and later.
func (c *Controller) StopNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grace = new(int64)
	for p := range c.removing {
		go func() { _ = podclient.RequestStop(context.Background(), p, wire.StopRequest{GraceSeconds: c.grace}) }()
	}
}

// jobs starts and removes the Jobs of a CronJob, and reconciles the existing ones.
func (c *Controller) jobs(ctx context.Context, v *resource.WorkloadInfo, d *workload.Decision, r *pass) error {
	for _, j := range v.Jobs {
		if slices.Contains(d.RemoveJobs, j.Object.Name) && !j.Object.Deleting {
			j.Object.Deleting = true
			if err := c.dirs.PutObject(j.Object); err != nil {
				return err
			}
			r.acted = true
		}
	}
	if d.MakeJob != nil {
		job, err := workloads.NewJob(v.Object, d.MakeJob)
		if err != nil {
			return err
		}
		job.UID, job.CreatedAt, job.Revision = objects.NewUID(), time.Now().UTC(), 1
		job.RequireLimits, job.TLSVerify = v.Object.RequireLimits, v.Object.TLSVerify
		if err := c.dirs.PutObject(job); err != nil {
			return err
		}
		r.acted = true
	}
	for _, j := range v.Jobs {
		if _, err := c.reconcileWorkload(ctx, j.Workload, r); err != nil {
			return err
		}
	}
	return nil
}
