package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/podrun/podrun/cgroups"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// apply answers the request for another Plan.
func (c *control) apply(conn *net.UnixConn, req *wire.ApplyRequest) error {
	if err := c.held(); err != nil {
		return wire.WriteFrame(conn, wire.Frame{Error: err})
	}
	frame := wire.Frame{Applied: true}
	var next pod.Plan
	err := json.Unmarshal(req.Plan, &next)
	if err == nil {
		err = c.engine.apply(&next, req.Manifest)
	}
	if err != nil {
		frame = wire.Frame{Error: &wire.Error{Message: err.Error(), Code: 1}}
	}
	return wire.WriteFrame(conn, frame)
}

// apply makes next the pod's Plan, now and for later: cgroups first, then the record,
// then the loop, which restarts the containers that have another revision. Whoever
// dies in between leaves a record that differs from what was wanted, so that the next
// `podrun up` does it again; nothing here minds being done twice.
func (e *engine) apply(next *pod.Plan, manifest []byte) error {
	e.applying.Lock()
	defer e.applying.Unlock()
	plan := e.latest()
	if err := fits(plan, next); err != nil {
		return err
	}
	if err := e.resize(next); err != nil {
		return err
	}
	if err := e.store.Update(next, manifest); err != nil {
		return errors.Join(err, e.resize(plan)) // what is not recorded must not hold
	}
	e.mu.Lock()
	e.next = next
	e.mu.Unlock()
	e.refresh() // labels and annotations may be files
	e.emit(lifecycle.Event{Kind: lifecycle.Replanned})
	return nil
}

// fits refuses what is no Plan for this very pod.
func fits(plan, next *pod.Plan) error {
	same := func(a, b []pod.Container) bool {
		return slices.EqualFunc(a, b, func(a, b pod.Container) bool { return a.Name == b.Name && a.Sidecar == b.Sidecar })
	}
	switch {
	case next.Version > pod.PlanVersion:
		return fmt.Errorf("apply the plan: version %d was written by a newer podrun", next.Version)
	case len(next.Ephemeral) < len(plan.Ephemeral) || !same(plan.Ephemeral, next.Ephemeral[:len(plan.Ephemeral)]):
		return errors.New("apply the plan: it lacks an ephemeral container that was added meanwhile: try again")
	case next.UID != plan.UID, !same(plan.InitContainers, next.InitContainers), !same(plan.Containers, next.Containers):
		return errors.New("apply the plan: it is one of another pod")
	}
	return nil
}

// latest is the Plan that was applied last, which the loop may not have taken up yet.
func (e *engine) latest() *pod.Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next != nil {
		return e.next
	}
	return e.plan
}

// replan takes the latest Plan up for what is done from now on. The loop calls it.
func (e *engine) replan() *pod.Plan {
	plan := e.latest()
	e.mu.Lock()
	e.plan, e.next = plan, nil
	e.mu.Unlock()
	e.announce(nil)
	return plan
}

// resize gives the pod's cgroup and those of its running containers the limits of a
// Plan. One that is being made gets them when it runs: see resizeLate.
func (e *engine) resize(plan *pod.Plan) error {
	e.mu.Lock()
	s := e.sandbox
	inside := map[string]cgroups.Limits{}
	for name, r := range e.runs {
		if c, ok := plan.Container(name); ok && r.container != nil {
			inside[name] = limits(c.Resources)
		}
	}
	e.mu.Unlock()
	switch {
	case s == nil: // it is being made, or the pod has ended
		return nil
	case s.cgroup == nil:
		if plan.Resources.Limited() {
			e.warn("limits are not enforced: the pod has no cgroup of its own")
		}
		return nil
	}
	return s.cgroup.Resize(limits(plan.Resources), inside)
}

// resizeLate is for what was made by one Plan while another was applied.
func (e *engine) resizeLate(made *pod.Plan) {
	e.applying.Lock()
	defer e.applying.Unlock()
	if latest := e.latest(); latest != made {
		if err := e.resize(latest); err != nil {
			e.warn("resources were not resized: " + err.Error())
		}
	}
}
