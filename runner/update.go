package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/sandbox"
	"github.com/podrun/podrun/volumes"
)

// apply answers the request to apply another Plan.
func (c *control) apply(conn *net.UnixConn, req *wire.ApplyRequest, _ []*os.File) error {
	if err := c.refusePaused(); err != nil {
		return err
	}
	var next pod.Plan
	err := json.Unmarshal(req.Plan, &next)
	if err == nil {
		err = c.engine.applyPlan(&next, req.Manifest)
	}
	if err != nil {
		return &wire.Error{Message: err.Error(), Code: 1}
	}
	return wire.WriteFrame(conn, wire.Frame{Applied: true})
}

// applyPlan makes next the pod's Plan. First it resizes the cgroups, then it records the Plan, then the loop
// restarts the containers whose revision has changed. If the supervisor dies in between, the record differs
// from the wanted Plan, and the next `podrun up` repeats the request. Every step can be repeated.
func (e *engine) applyPlan(next *pod.Plan, manifest []byte) error {
	e.applying.Lock()
	defer e.applying.Unlock()
	plan := e.latestPlan()
	if err := checkSamePod(plan, next); err != nil {
		return err
	}
	if err := e.resize(next); err != nil {
		return err
	}
	if err := e.pod.ReplacePlan(next, manifest); err != nil {
		return errors.Join(err, e.resize(plan)) // a Plan that is not recorded must have no effect
	}
	e.mu.Lock()
	e.next = next
	e.mu.Unlock()
	e.refreshVolumes() // volumes may contain labels and annotations
	e.emit(lifecycle.Event{Kind: lifecycle.Replanned})
	return nil
}

// checkSamePod returns an error if next is not a Plan of this very pod.
func checkSamePod(plan, next *pod.Plan) error {
	same := func(a, b []pod.Container) bool {
		return slices.EqualFunc(a, b, func(a, b pod.Container) bool { return a.Name == b.Name && a.Sidecar == b.Sidecar })
	}
	switch {
	case next.Version > pod.PlanVersion:
		return fmt.Errorf("apply the plan: version %d was written by a newer podrun", next.Version)
	case len(next.Ephemeral) < len(plan.Ephemeral) || !same(plan.Ephemeral, next.Ephemeral[:len(plan.Ephemeral)]):
		return errors.New("apply the plan: it lacks an ephemeral container that was added in the meantime; try again")
	case next.UID != plan.UID, !same(plan.InitContainers, next.InitContainers), !same(plan.Containers, next.Containers):
		return errors.New("apply the plan: it belongs to another pod")
	}
	return nil
}

// latestPlan returns the Plan that was applied last. The loop may not use it yet.
func (e *engine) latestPlan() *pod.Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != nil {
		return e.next
	}
	return e.plan
}

// takeLatestPlan makes the latest Plan the loop's Plan and returns it. The loop calls it.
func (e *engine) takeLatestPlan() *pod.Plan {
	plan := e.latestPlan()
	e.mu.Lock()
	e.plan, e.next = plan, nil
	e.mu.Unlock()
	e.publishEndpoint(nil)
	return plan
}

// resize applies a Plan's limits to the cgroups of the pod and of its running containers. A container that
// is being made gets these limits when it runs: see resizeIfReplanned.
func (e *engine) resize(plan *pod.Plan) error {
	e.mu.Lock()
	s := e.sandbox
	inside := map[string]cgroups.Limits{}
	for name, r := range e.instances {
		if c, ok := plan.Container(name); ok && r.container != nil {
			inside[name] = sandbox.Limits(c.Resources)
		}
	}
	e.mu.Unlock()
	switch {
	case s == nil: // it is being made, or the pod has ended
		return nil
	case s.Cgroup == nil:
		if plan.Resources.Limited() {
			e.warn("limits are not enforced: the pod has no cgroup of its own")
		}
		return nil
	}
	return s.Cgroup.Resize(sandbox.PodLimits(plan.Resources), inside)
}

// resizeIfReplanned applies the latest Plan's limits to what was made by the Plan made, if another Plan was
// applied meanwhile.
func (e *engine) resizeIfReplanned(made *pod.Plan) {
	e.applying.Lock()
	defer e.applying.Unlock()
	if latest := e.latestPlan(); latest != made {
		if err := e.resize(latest); err != nil {
			e.warn("resources were not resized: " + err.Error())
		}
	}
}

// objectChanged handles the change of an object (ConfigMap, Secret, Service, NetworkPolicy, Namespace).
// Environments do not change until the next start of a container. An error means that the current
// NetworkPolicies are not in effect.
func (e *engine) objectChanged(what wire.ChangedRequest) error {
	s := e.currentSandbox()
	if what.Kind.ConcernsServices() && s != nil && s.Slot != 0 {
		if err := s.UpdateServices(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if what.Kind == pod.KindNetworkPolicy || what.Kind == pod.KindNamespace {
		if s != nil {
			if err := s.UpdatePolicies(); err != nil {
				s.WarnOfPolicies(err)
				return err
			}
		}
		return nil
	}
	e.refreshVolumes()
	e.emit(lifecycle.Event{Kind: lifecycle.ObjectChanged})
	return nil
}

// refreshVolumes rewrites the files of all volumes from their current sources. If a source is not
// available, the volume keeps its files and the error is reported as an event.
func (e *engine) refreshVolumes() {
	s := e.currentSandbox()
	if s == nil {
		return
	}
	e.refreshing.Lock()
	defer e.refreshing.Unlock()
	plan := e.latestPlan()
	var bad sandbox.VolumeErrors
	for i := range plan.Volumes {
		v := &plan.Volumes[i]
		if v.Kind != pod.Files {
			continue
		}
		if _, err := os.Lstat(s.VolumePath(v)); err != nil {
			continue // the pod is ending
		}
		if err := s.WriteFiles(v); err != nil {
			bad.Add(v.Name, err)
		}
	}
	if len(bad.Lines) > 0 {
		e.emit(lifecycle.Event{Kind: lifecycle.VolumesFailed, Attempt: s.Attempt, Message: bad.Error()})
	}
	e.addBusy(1) // no hibernation until the old files are swept
	time.AfterFunc(sweepAfter, func() {
		defer e.addBusy(-1)
		e.refreshing.Lock()
		defer e.refreshing.Unlock()
		for i := range plan.Volumes {
			if v := &plan.Volumes[i]; v.Kind == pod.Files {
				_ = volumes.SweepFiles(s.VolumePath(v), v.Dirs) // the next refresh sweeps as well
			}
		}
	})
}

// sweepAfter is how long replaced files stay, for processes that are about to open them.
const sweepAfter = time.Second

// publishEndpoint publishes the pod's endpoint to other pods if it has changed, and adds it to or removes
// it from Services. With a nil status the readiness stays.
func (e *engine) publishEndpoint(st *pod.Status) {
	e.mu.Lock()
	s, plan := e.sandbox, e.plan
	if s == nil || s.Slot == 0 {
		e.mu.Unlock()
		return
	}
	e.busy++
	e.mu.Unlock()
	s.SetEndpoint(plan, st)
	go func() {
		defer e.addBusy(-1)
		if err := s.PublishEndpoint(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
}
