package hostdeps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podrun/podrun/cgroups/weight"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

const (
	// scopeTime is how long the service manager may take to make a pod's scope: much more than it needs
	// on a busy board, and no more than a user would wait.
	scopeTime = 5 * time.Second

	// unitScopeTime is the same for a unit. Nobody waits for a unit, and it may start together with many
	// others. Without a scope its pod has no limits and cannot be started after a crash.
	unitScopeTime = 30 * time.Second

	// ScopeStopMargin is how long beyond the grace period the service manager waits when it stops a scope.
	ScopeStopMargin = 10 * time.Second
)

// useScope makes the pod start in a cgroup of its own. If this process has its cgroup to itself (a
// unit with Delegate), the pod runs below that cgroup. Otherwise the service manager makes a scope. Without
// a manager the pod's supervisor searches for a cgroup, or reports why there is none. After the start,
// warningAfterStart returns a warning for the user, or "".
func useScope(s *podinit.Options, plan *pod.Plan) (warningAfterStart func() string) {
	none := func() string { return "" }
	manager, ok := delegation.FindManager()
	unit, err := scopeParent(s, manager, ok)
	if _, alone, oerr := delegation.Own(s.First.Pids()...); alone && unit == nil || errors.Join(err, oerr) != nil || !ok {
		return none
	}
	timeout := unitScopeTime
	if unit == nil {
		unit, timeout = &systemd.Unit{}, scopeTime
	}
	var failed error
	s.MoveToCgroup = func(pid int) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		cgroup, err := systemd.StartScope(ctx, manager, systemd.Scope{
			Name: scopeName(plan), Description: "podrun: pod " + plan.Namespace + "/" + plan.Name, PID: pid,
			Stop:  time.Duration(plan.GraceSeconds)*time.Second + ScopeStopMargin,
			Slice: unit.Slice, Before: unit.Name, Values: scopeValues(plan.Resources),
		})
		if err == nil {
			err = delegation.MoveToLeaf(cgroup, pid)
		}
		failed = err
	}
	return func() string {
		if failed == nil {
			return ""
		}
		if st, err := s.Pod.Status(); err != nil || st.Cgroup == "" { // no other writable cgroup either
			return "the pod has no scope of its own: " + failed.Error()
		}
		return ""
	}
}

func scopeName(plan *pod.Plan) string { return "podrun-" + plan.Namespace + "-" + plan.Name }

// scopeValues returns the values of a pod's cgroup that act only between siblings. They are set on the scope
// as well, because the siblings of pods are scopes.
func scopeValues(r pod.Resources) systemd.ScopeValues {
	return systemd.ScopeValues{
		CPUWeight: weight.CPU(r.CPURequest, r.CPULimit),
		MemoryMin: uint64(r.MemoryMin), MemoryLow: uint64(r.MemoryLow),
	}
}

// ResizeScope changes the values of a pod's scope, if the pod has one, from one Plan's to another's. podrun does not write them to the cgroup, because the service manager would overwrite them.
func (k *launcher) ResizeScope(p store.Pod, from, to *pod.Plan) error {
	st, err := p.Status()
	if err != nil {
		return err
	}
	unit, ok := systemd.ScopeOf(st.Cgroup, scopeName(to))
	if !ok {
		return nil
	}
	manager, ok := delegation.FindManager()
	if !ok {
		return fmt.Errorf("resize %s: there is no systemd for this user", unit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	return systemd.ChangeScope(ctx, manager, unit, scopeValues(from.Resources), scopeValues(to.Resources))
}

// scopeParent returns the unit whose main process this is (a unit of pods, or one that its pods outlive), if its pod
// has to run next to it in a scope. That is so if the unit's cgroup is not delegated: after a crash systemd
// starts the main process in that cgroup again, which fails (EBUSY) while the pod has controllers below it. At
// shutdown systemd stops the unit before the scopes: the unit ends its pods, or starts no others.
func scopeParent(s *podinit.Options, m delegation.Manager, ok bool) (*systemd.Unit, error) {
	unit, is := systemd.OwnUnit()
	if s.Notify == nil && !systemd.OutlivedByPods(unit.Name) || !is || !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), unitScopeTime)
	defer cancel()
	if given, err := unit.Delegated(ctx, m); given || err != nil {
		return nil, err
	}
	return &unit, nil
}

// StartScope moves a process to a scope of its own, so that it outlives a login. Without a manager the
// process stays in the caller's cgroup.
func StartScope(s systemd.Scope) {
	manager, ok := delegation.FindManager()
	if _, alone, err := delegation.Own(); alone || err != nil || !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	_, _ = systemd.StartScope(ctx, manager, s)
}
