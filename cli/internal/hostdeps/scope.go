package hostdeps

import (
	"context"
	"errors"
	"time"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/pod"
)

const (
	// scopeTime is how long the service manager may take to give a pod its scope: much
	// more than it needs on a busy board, and no more than a user waits for.
	scopeTime = 5 * time.Second

	// unitScopeTime is the same for a unit, which nobody waits for, and which may start with many
	// others at once: without a scope its pod has no limits, and no start after a crash.
	unitScopeTime = 30 * time.Second

	// StopMargin is what a pod that is told to end by the manager has beyond its grace.
	StopMargin = 10 * time.Second
)

// startInScope sees to it that the pod which s starts gets a cgroup of its own. Where this
// process has one to itself (a unit with Delegate) the pod lives in there too;
// else the service manager is asked for a scope. warning is what the user must know,
// once the pod has been started; without a manager the pod's supervisor finds a
// cgroup, or says why there is none.
func startInScope(s *podinit.Options, plan *pod.Plan) (warning func() string) {
	none := func() string { return "" }
	manager, ok := delegation.FindManager()
	unit, err := scopeParent(s, manager, ok)
	if _, alone, oerr := delegation.Own(s.Prespawn.Pids()...); alone && unit == nil || errors.Join(err, oerr) != nil || !ok {
		return none
	}
	patience := unitScopeTime
	if unit == nil {
		unit, patience = &systemd.Unit{}, scopeTime
	}
	var failed error
	s.MoveToCgroup = func(pid int) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		name := plan.Namespace + "-" + plan.Name
		cgroup, err := systemd.StartScope(ctx, manager, systemd.Scope{
			Name: "podrun-" + name, Description: "podrun: pod " + plan.Namespace + "/" + plan.Name, PID: pid,
			Stop:  time.Duration(plan.GraceSeconds)*time.Second + StopMargin,
			Slice: unit.Slice, Before: unit.Name,
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
		if st, err := s.Pod.Status(); err != nil || st.Cgroup == "" { // nor another that is the user's
			return "the pod has no scope of its own: " + failed.Error()
		}
		return ""
	}
}

// scopeParent is the unit whose main process this is, if the unit's pod has to live beside
// it, in a scope: one whose cgroup was not given away, for systemd starts the main
// process in there again after a crash, where it cannot while the pod has
// controllers below (EBUSY).
func scopeParent(s *podinit.Options, m delegation.Manager, ok bool) (*systemd.Unit, error) {
	unit, is := systemd.OwnUnit()
	if s.Notify == nil || !is || !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), unitScopeTime)
	defer cancel()
	if given, err := unit.Delegated(ctx, m); given || err != nil {
		return nil, err
	}
	return &unit, nil
}

// StartScope gives a process a scope of its own, that it outlives a login. Where there is no
// manager it lives where the caller does.
func StartScope(s systemd.Scope) {
	manager, ok := delegation.FindManager()
	if _, alone, err := delegation.Own(); alone || err != nil || !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTime)
	defer cancel()
	_, _ = systemd.StartScope(ctx, manager, s)
}
