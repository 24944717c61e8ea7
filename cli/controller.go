package cli

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

	"github.com/podrun/podrun/cli/internal/remote"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/workloads"
	"github.com/podrun/podrun/workload"
)

// controller does for workloads what Decide says. It holds their locks.
type controller struct {
	front  *front
	dirs   store.Dirs
	keeper pods
	roots  []store.Workload
	fresh  func(*upPod) // is told of every pod that has been made

	// connect, if any, gives a pod that is to be made what it gets of a unit.
	connect func(*upPod) error

	mu       sync.Mutex
	removing map[store.Pod]bool
	grace    *int64 // for pods that are removed; nil: their own
	bell     [2]int // a pipe: something has happened that no file tells
	said     map[string]string
}

func (f *front) newController(dirs store.Dirs, keeper pods, roots []store.Workload) (*controller, error) {
	c := &controller{front: f, dirs: dirs, keeper: keeper, roots: roots, removing: map[store.Pod]bool{}, said: map[string]string{}}
	if err := unix.Pipe2(c.bell[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return c, nil
}

func (c *controller) close() {
	unix.Close(c.bell[0])
	unix.Close(c.bell[1])
}

// ring has a waiting controller look again.
func (c *controller) ring() { unix.Write(c.bell[1], []byte{1}) } // full: it is rung already

// outcome is what one look at all workloads has come to.
type round struct {
	acted, busy bool
	wake        time.Time
	left        []store.Workload // that go on
	watch       *store.Watch     // tells when to look again
}

// look does for every workload what is to be done now. What it watches it watched before
// it looked.
func (c *controller) look(ctx context.Context) (r round, err error) {
	if r.watch, err = store.NewWatch(); err != nil {
		return r, err
	}
	for _, w := range c.roots {
		goes, err := c.lookAt(ctx, w, &r)
		if err != nil {
			c.say(w, err)
			r.wakeAt(time.Now().Add(retryTime))
			goes = true
		}
		if goes {
			r.left = append(r.left, w)
		}
	}
	c.mu.Lock()
	r.busy = len(c.removing) > 0
	c.mu.Unlock()
	return r, nil
}

// retryTime is how long to wait after a look that has failed.
const retryTime = 10 * time.Second

func (r *round) wakeAt(t time.Time) {
	if !t.IsZero() && (r.wake.IsZero() || t.Before(r.wake)) {
		r.wake = t
	}
}

// say says an error of a workload once.
func (c *controller) say(w store.Workload, err error) {
	key := string(w.Kind) + "/" + w.Name
	if c.said[key] != err.Error() {
		c.said[key] = err.Error()
		report.Print(c.front.err, err)
	}
}

// lookAt does for one workload what is to be done now. goes is whether somebody has to
// go on looking after it.
func (c *controller) lookAt(ctx context.Context, w store.Workload, r *round) (goes bool, err error) {
	if err := r.watch.Workload(w); err != nil {
		return true, err
	}
	v, err := c.watched(w, r.watch)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	c.sweep(v)
	c.markLeaving(v)
	d := v.decide(time.Now())
	r.wakeAt(d.Wake)
	if !reflect.DeepEqual(d.State, v.state) {
		r.acted = true // who waits for it looks at it again, and so do we
		if err := w.WriteState(d.State); err != nil {
			return true, err
		}
	}
	d.Make = slices.DeleteFunc(d.Make, func(m workload.Make) bool {
		if m.Name == "" || !c.leaving(c.dirs.Pod(w.Namespace, m.Name)) {
			return false
		}
		r.wakeAt(time.Now().Add(leavingTime))
		return true
	})
	if len(d.Make) > 0 {
		r.acted = true
		if err := c.makePods(ctx, v, &d); err != nil {
			return true, err
		}
	}
	for _, name := range d.Remove {
		c.remove(v.places[name])
	}
	if err := c.jobs(ctx, v, &d, r); err != nil {
		return true, err
	}
	if err := c.dropClaims(v, d.Delete); err != nil {
		return true, err
	}
	if d.Delete {
		return false, c.forget(w, v)
	}
	return !d.Done, nil
}

// forget removes a workload whose pods are gone.
func (c *controller) forget(w store.Workload, v *view) error {
	if err := w.Remove(); err != nil {
		return err
	}
	if c.fresh != nil {
		fmt.Fprintf(c.front.err, "podrun: %s is gone\n", v.name())
	}
	return nil
}

// makePods makes pods, all at once, by the way of `podrun up`. Why one cannot be made is
// remembered, and tried again.
func (c *controller) makePods(ctx context.Context, v *view, d *workload.Decision) error {
	l := &launch{front: c.front, dirs: c.dirs, keeper: c.keeper, requireLimits: v.object.RequireLimits, background: c.connect == nil}
	l.pull.TLSVerify = v.object.TLSVerify
	defer l.release()
	for _, m := range d.Make {
		i := slices.IndexFunc(d.State.Revisions, func(r workload.Revision) bool { return r.Name == m.Revision })
		if i < 0 {
			return fmt.Errorf("%s has no revision %q", v.name(), m.Revision)
		}
		name := m.Name
		for name == "" || c.taken(v.object.Namespace, name) && m.Name == "" {
			name = workloads.PodNamePrefix(v.object, m) + rand.String(5)
		}
		o, err := workloads.NewPod(v.object, m, d.State.Revisions[i].Template, name)
		if err == nil {
			err = c.makeClaims(v, m)
		}
		if err != nil {
			return err
		}
		l.pods = append(l.pods, &upPod{object: o, place: c.dirs.Pod(o.Pod.Namespace, name)})
	}
	err := l.prepare(ctx)
	for _, p := range l.pods {
		if err == nil && c.connect != nil {
			err = c.connect(p)
		}
	}
	if err == nil {
		err = l.start()
	}
	for _, p := range l.pods {
		switch {
		case !p.started:
			p.hangUp()
		case c.fresh != nil:
			c.fresh(p)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		delete(c.said, string(v.place.Kind)+"/"+v.place.Name)
		d.State.Made()
	} else {
		c.say(v.place, fmt.Errorf("%s: cannot make its pods: %w", v.name(), err))
		d.State.Refuse(err.Error(), time.Now())
	}
	return v.place.WriteState(d.State)
}

func (c *controller) taken(namespace, name string) bool {
	return c.dirs.Pod(namespace, name).HasRemains()
}

// remove stops and removes a pod, which takes its time.
func (c *controller) remove(p store.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removing[p] {
		return
	}
	c.removing[p] = true
	grace := c.grace
	go func() {
		err := downPod(context.Background(), c.front.err, c.keeper.remove, p, ending{grace: grace})
		if err != nil && p.HasRemains() {
			report.Print(c.front.err, err)
			_ = remote.Pause(context.Background(), time.Second) // the next try is not to be at once
		}
		c.mu.Lock()
		delete(c.removing, p)
		c.mu.Unlock()
		c.ring()
	}()
}

// hurry ends the pods that are being removed at once, and all that will be.
func (c *controller) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grace = new(int64)
	for p := range c.removing {
		go func() { _ = stop(context.Background(), p, c.grace) }()
	}
}

// jobs starts and removes the Jobs of a CronJob, and looks after those there are.
func (c *controller) jobs(ctx context.Context, v *view, d *workload.Decision, r *round) error {
	for _, j := range v.jobs {
		if slices.Contains(d.RemoveJobs, j.object.Name) && !j.object.Deleting {
			j.object.Deleting = true
			if err := c.dirs.PutObject(j.object); err != nil {
				return err
			}
			r.acted = true
		}
	}
	if d.MakeJob != nil {
		job, err := workloads.NewJob(v.object, d.MakeJob)
		if err != nil {
			return err
		}
		job.UID, job.CreatedAt, job.Revision = newUID(), time.Now().UTC(), 1
		job.RequireLimits, job.TLSVerify = v.object.RequireLimits, v.object.TLSVerify
		if err := c.dirs.PutObject(job); err != nil {
			return err
		}
		r.acted = true
	}
	for _, j := range v.jobs {
		if _, err := c.lookAt(ctx, j.place, r); err != nil {
			return err
		}
	}
	return nil
}
