package podup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// busyError is the error for a pod that another command is creating or removing.
func busyError(p store.Pod) error {
	return report.New(report.Failure, "try again when that is done; podrun ps lists the pods", "pod %s is being started or removed by another podrun command", p.Name)
}

// lockAndRemoveOld locks a pod's name and removes what an earlier pod of that name has left, which has ended
// or was killed. It returns the lock.
func (r *Run) lockAndRemoveOld(p store.Pod) (*os.File, error) {
	old := p.HasRemains()
	lock, err := p.Lock()
	if err != nil || !old {
		return lock, err
	}
	if err = podinit.EndFormer(r.Dirs, p, r.Env.ErrOut); err == nil {
		err = r.Launcher.Remove(p) // also removes the lock's file
	}
	lock.Close()
	if err != nil {
		return nil, err
	}
	return p.Lock()
}

// record writes a pod's record: its manifest with the time of its creation, its Plan, and the events of
// its images.
func (r *Run) record(p *Target, created time.Time) error {
	if err := r.WriteRecord(p, created); err != nil {
		return err
	}
	return p.Pod.AddEvents(r.pullEvents(p)...)
}

// WriteRecord writes a pod's record without the events.
func (r *Run) WriteRecord(p *Target, created time.Time) error {
	stamped := p.Object.Pod.DeepCopy()
	podutil.FillSystemFields(stamped, p.Plan.UID, created)
	text, err := manifest.Marshal(stamped)
	if err != nil {
		return err
	}
	return r.create(p, text)
}

// ownsHostParts reports whether a pod owns what no other pod may have at the same time: a range of IDs, or
// devices.
func ownsHostParts(p *Target) bool { return p.Plan.Users != nil || podutil.CountsDevices(p.Object.Pod) }

// create makes the pod's directory. A pod with a user namespace of its own gets its ID range, which it
// keeps until it is removed; a pod that requests devices by number gets them.
func (r *Run) create(p *Target, manifest []byte) error {
	if !ownsHostParts(p) {
		return p.Pod.Create(p.Plan, manifest)
	}
	lock, err := r.Dirs.LockSharedResources()
	if err != nil {
		return err
	}
	defer lock.Close()
	if podutil.CountsDevices(p.Object.Pod) {
		held, err := heldDevices(r.Dirs, p.Pod)
		if err == nil {
			err = admission.AssignDevices(r.Env, p.Plan, p.Object.Pod, held)
		}
		if err != nil {
			return err
		}
	}
	if p.Plan.Users != nil {
		if err := r.assignUsers(p); err != nil {
			return err
		}
	}
	return p.Pod.Create(p.Plan, manifest)
}

// assignUsers chooses the ID range of a pod.
func (r *Run) assignUsers(p *Target) error {
	has := r.Env.Deps.PodIDs()
	ranges := admission.UserRanges(min(has.Users, has.Groups))
	taken, err := takenUsers(r.Dirs, p.Pod)
	if err != nil {
		return err
	}
	before, err := p.Pod.Plan()
	if p.Resumed != nil && err == nil && before.Users != nil && slices.Contains(ranges, *before.Users) {
		p.Plan.Users = before.Users
		return nil
	}
	i := slices.IndexFunc(ranges, func(ids pod.IDRange) bool { return !slices.ContainsFunc(taken, ids.Overlaps) })
	if i < 0 {
		return report.New(report.Host, "podrun down one of them; or "+has.Hint,
			"pod %s: hostUsers: false: all %d ranges of ids are used by other pods", p.Pod.Name, len(ranges))
	}
	p.Plan.Users = &ranges[i]
	return nil
}

// takenUsers returns the ID ranges of the user's other pods, running or not.
func takenUsers(dirs store.Dirs, but store.Pod) (taken []pod.IDRange, err error) {
	pods, err := dirs.Pods()
	if err != nil {
		return nil, fmt.Errorf("find free ids: %w", err)
	}
	for _, other := range pods {
		if other.DataDir() == but.DataDir() {
			continue
		}
		if plan, err := other.Plan(); err == nil && plan.Users != nil {
			taken = append(taken, *plan.Users)
		}
	}
	return taken, nil
}

// startPod starts the processes of a pod whose images are present.
func (r *Run) startPod(p *Target, lock *os.File, created time.Time) error {
	record := func() error { return r.record(p, created) }
	if err := r.reservePorts(p); err != nil { // opens them again if the old pod of that name had them
		return err
	}
	defer p.closePorts()
	if ownsHostParts(p) { // record chooses them
		if err := record(); err != nil {
			return err
		}
		record = nil
	}
	warning, err := r.Launcher.Start(p.Pod, p.Plan, cmdutil.StartOptions{Lock: lock, Ports: p.ports, Notify: p.NotifyTarget, First: r.Preparation.Process(), Record: record})
	if warning != "" {
		fmt.Fprintf(r.Env.ErrOut, "podrun: pod %s: warning: %s\n", p.Pod.Name, warning)
	}
	return err
}

// begin locks a pod's name and calls start. It removes a pod that cannot be started, unless the pod
// resumes an earlier one.
func (r *Run) begin(p *Target, start func(p *Target, lock *os.File, created time.Time) error) (err error) {
	lock, err := r.Lock(p)
	if err != nil {
		return err
	}
	defer lock.Close() // the pod's processes have their own descriptors
	if err := r.checkWithdrawn(p); err != nil {
		return err
	}
	if p.Resumed != nil {
		return start(p, lock, p.Resumed.Created)
	}
	if err = start(p, lock, time.Now()); err != nil {
		err = errors.Join(err, r.Launcher.Remove(p.Pod))
	}
	return err
}

// Lock locks a pod's name after removing everything but what the pod resumes with.
func (r *Run) Lock(p *Target) (*os.File, error) {
	if p.Lock != nil {
		return Dup(p.Lock)
	}
	if p.Resumed == nil {
		return r.lockAndRemoveOld(p.Pod)
	}
	lock, err := p.Pod.Lock()
	if err != nil {
		return nil, err
	}
	if plan, err := p.Pod.Plan(); err == nil && plan.UID == p.Resumed.UID {
		if err := podinit.EndFormer(r.Dirs, p.Pod, r.Env.ErrOut); err != nil {
			lock.Close()
			return nil, err
		}
		return lock, nil
	}
	lock.Close() // the pod was removed meanwhile
	p.Resumed = nil
	return r.lockAndRemoveOld(p.Pod)
}
