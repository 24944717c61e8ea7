package runner

import (
	"fmt"
	"os"
	"time"

	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/runner/container"
)

// isDelegable reports whether a prober of the pod init can run a probe of a running container while this
// supervisor hibernates.
func (e *engine) isDelegable(c *pod.Container, kind lifecycle.ProbeKind) bool {
	p := lifecycle.PlannedProbe(c, kind)
	if p.Exec == nil {
		_, _, ok := e.getProber().Plain(&p.Handler)
		return ok
	}
	x := e.acquire(c.Name)
	if x == nil {
		return false
	}
	defer x.Release()
	return x.CanDelegateExec(p.Exec)
}

// delegate makes the pod init hold what its probers need for these probes. The caller holds mu.
func (e *engine) delegate(probes []lifecycle.SteadyProbe) (err error) {
	if len(probes) == 0 {
		return nil
	}
	var list []podinit.Probe
	var shim *os.File
	targets := map[string]*os.File{}
	defer func() {
		container.CloseFiles(shim)
		for _, f := range targets {
			f.Close()
		}
	}()
	for _, s := range probes {
		r := e.instances[s.Container]
		if r == nil || r.container == nil || r.container.Attempt != s.Attempt {
			return fmt.Errorf("container %s does not run", s.Container)
		}
		planned := lifecycle.PlannedProbe(r.container.Plan, s.Kind)
		p := podinit.Probe{Next: s.Next, Period: s.Period, Timeout: time.Duration(planned.TimeoutSeconds) * time.Second, HostNet: len(e.sockets.Files) == 0, Counter: store.ProbeCounter(e.plan, s.Container, string(s.Kind))}
		if planned.Exec == nil {
			p.Server, p.Request, _ = e.prober.Plain(&planned.Handler) // isDelegable has made the prober
			list = append(list, p)
			continue
		}
		target, err := r.container.DelegateExec(planned.Exec, &p)
		if err != nil {
			return err
		}
		container.CloseFiles(targets[s.Container])
		targets[s.Container] = target
		list = append(list, p)
	}
	if len(targets) > 0 {
		if shim, err = e.shim.Open(); err != nil {
			return err
		}
	}
	e.counting.Lock()
	defer e.counting.Unlock()
	return e.handoff.PodInit.KeepProbes(list, e.probeCounters(e.plan), shim, targets)
}
