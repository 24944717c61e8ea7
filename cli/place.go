package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

	// stopMargin is what a pod that is told to end by the manager has beyond its grace.
	stopMargin = 10 * time.Second
)

// settle sees to it that the pod which s starts gets a cgroup of its own. Where this
// process has one to itself (a unit with Delegate) the pod lives in there too;
// else the service manager is asked for a scope. warning is what the user must know,
// once the pod has been started; without a manager the pod's supervisor finds a
// cgroup, or says why there is none.
func settle(s *podinit.Options, plan *pod.Plan) (warning func() string) {
	none := func() string { return "" }
	manager, ok := delegation.FindManager()
	unit, err := apart(s, manager, ok)
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
			Stop:  time.Duration(plan.GraceSeconds)*time.Second + stopMargin,
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

// warnOfLogout says, once, that pods which are to stay will not outlive the user's
// last login: they live among the units of a manager that does not.
func (f *front) warnOfLogout(pods []*upPod, lingers func() bool) {
	manager, ok := delegation.FindManager()
	if !ok || manager.Cgroup == delegation.Mount {
		return
	}
	for _, p := range pods {
		st, err := p.place.Status()
		if err == nil && strings.HasPrefix(st.Cgroup, manager.Cgroup+"/") && !lingers() {
			fmt.Fprintf(f.err, "podrun: warning: systemd ends pod %s when you log out; loginctl enable-linger lets it go on\n", p.place.Name)
			return
		}
	}
}

// apart is the unit whose main process this is, if the unit's pod has to live beside
// it, in a scope: one whose cgroup was not given away, for systemd starts the main
// process in there again after a crash, where it cannot while the pod has
// controllers below (EBUSY).
func apart(s *podinit.Options, m delegation.Manager, ok bool) (*systemd.Unit, error) {
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
