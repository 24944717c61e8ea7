package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/store"
)

// idleBeforeUnitLoop is how long a controller waits in Go for the next event before it executes the unit loop: during a
// roll-out events follow each other quickly.
const idleBeforeUnitLoop = 2 * time.Second

// Run reconciles the workloads until none needs a controller. If nothing happens for a while it calls
// execUnitLoop, if set, with the descriptors that wake the controller. execUnitLoop returns only on failure, or nil if it
// cannot wait now.
func (c *Controller) Run(ctx context.Context, execUnitLoop func(wakes ...int) error) error {
	stop := context.AfterFunc(ctx, c.wake)
	defer stop()
	for quiet := time.Now(); ctx.Err() == nil; {
		r, err := c.reconcile(ctx)
		if err != nil {
			return err
		}
		c.roots = r.left
		switch {
		case len(r.left) == 0 && !r.busy:
			return r.watch.Close()
		case r.acted:
			quiet = time.Now()
			r.watch.Close()
			continue
		}
		if execUnitLoop != nil && !r.busy && time.Since(quiet) >= idleBeforeUnitLoop {
			if err := c.waitInUnitLoop(r, execUnitLoop); err != nil {
				return err
			}
			quiet = time.Now()
			continue
		}
		limit := time.Time{}
		if execUnitLoop != nil && !r.busy {
			limit = quiet.Add(idleBeforeUnitLoop)
		}
		happened, err := c.wait(r, limit)
		r.watch.Close()
		if err != nil {
			return err
		}
		if happened {
			quiet = time.Now()
		}
	}
	return ctx.Err()
}

// wait waits for an event, or for the time of the next pass.
func (c *Controller) wait(r pass, limit time.Time) (happened bool, err error) {
	for {
		ms := -1
		for _, t := range []time.Time{r.wake, limit} {
			if left := int(time.Until(t).Milliseconds()) + 1; !t.IsZero() && (ms < 0 || left < ms) {
				ms = max(left, 0)
			}
		}
		fds := []unix.PollFd{{Fd: int32(r.watch.FD()), Events: unix.POLLIN}, {Fd: int32(c.wakePipe[0]), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, ms)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("wait for pods: %w", err)
		}
		if fds[1].Revents != 0 {
			unix.Read(c.wakePipe[0], make([]byte, 64))
		}
		return n > 0 || !r.wake.IsZero() && !time.Now().Before(r.wake), nil
	}
}

// waitInUnitLoop executes the unit loop, with the descriptors that end its wait.
func (c *Controller) waitInUnitLoop(r pass, execUnitLoop func(wakes ...int) error) error {
	defer r.watch.Close()
	wakes := []int{r.watch.FD()}
	if !r.wake.IsZero() {
		timer, err := wallTimer(r.wake)
		if err != nil {
			return err
		}
		defer unix.Close(timer)
		wakes = append(wakes, timer)
	}
	return execUnitLoop(wakes...)
}

// wallTimer returns a descriptor that becomes readable at a time of the wall clock, or when the clock is
// set: a board without a battery gets the time only after boot.
func wallTimer(moment time.Time) (fd int, err error) {
	fd, err = unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("make a timer: %w", err)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(moment.UnixNano())}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("set a timer: %w", err)
	}
	return fd, nil
}

// LockUncontrolled makes this process the controller of those workloads that have none.
func LockUncontrolled(workloads []store.Workload) (locked []store.Workload, locks []*store.FileLock, err error) {
	for _, w := range workloads {
		l, err := w.Lock()
		if errors.Is(err, store.ErrLocked) {
			continue
		}
		if err != nil {
			return locked, locks, err
		}
		locked, locks = append(locked, w), append(locks, l)
	}
	return locked, locks, nil
}

// loadWatched is LoadWorkload that starts to watch the files before it reads them. Pods that have lost their runtime
// directories are taken up, and watched again.
func (c *Controller) loadWatched(ctx context.Context, w store.Workload, watch *store.Watch) (*resource.WorkloadInfo, error) {
	for {
		if err := c.watchPods(w.Namespace, watch); err != nil {
			return nil, err
		}
		lost, err := podclient.RecoverLost(ctx, c.dirs, c.env.ErrOut)
		if err != nil {
			return nil, err
		}
		if lost == 0 {
			return resource.LoadWorkload(c.dirs, w)
		}
	}
}

// watchPods watches the pods of a namespace.
func (c *Controller) watchPods(namespace string, watch *store.Watch) error {
	pods, err := c.dirs.Pods()
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Namespace == namespace {
			if err := watch.Pod(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// removalPoll is the interval at which to check whether a pod's name is free.
const removalPoll = 50 * time.Millisecond

// beingRemoved reports whether a pod with only some files left is being removed.
func (c *Controller) beingRemoved(p store.Pod) bool {
	c.mu.Lock()
	ours := c.removing[p]
	c.mu.Unlock()
	if ours || !p.HasRemains() {
		return ours
	}
	st, err := os.Stat(p.DataDir())
	return p.Alive() || err == nil && time.Since(st.ModTime()) < sweepTime
}

// markRemoving marks pods that are being removed as stopping. The remover of a pod that a reboot has
// ended holds its lock, just as the supervisor of a running pod does.
func (c *Controller) markRemoving(v *resource.WorkloadInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range v.Pods {
		if p := &v.Pods[i]; c.removing[v.StoredPods[p.Name]] {
			p.Stopping = true
		}
	}
}

// sweepTime is the least age of an incomplete pod that is removed: a pod that is being removed at this
// moment is incomplete too.
const sweepTime = 10 * time.Second

// sweep removes incomplete pods whose creator was killed. A creator that is still working holds the pod's
// lock.
func (c *Controller) sweep(v *resource.WorkloadInfo) {
	for _, p := range v.Incomplete {
		if st, err := os.Stat(p.DataDir()); err != nil || time.Since(st.ModTime()) < sweepTime {
			continue
		}
		lock, err := p.Lock()
		if err != nil {
			continue
		}
		if !p.Exists() {
			if err := c.launcher.Remove(p); err != nil {
				c.reportOnce(v.Workload, err)
			}
		}
		lock.Close()
	}
}
