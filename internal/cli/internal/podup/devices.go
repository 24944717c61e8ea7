package podup

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// assignDevices chooses the devices that a pod requests by number, or returns why it cannot have them. If the
// pod does not run, the choice is preliminary: create chooses again under a lock, because several commands may
// start pods at once.
func (r *Run) assignDevices(p *Target, plan *pod.Plan) error {
	if !podutil.CountsDevices(p.Object.Pod) {
		return nil
	}
	if before, err := p.Pod.Plan(); err == nil && p.Resumed != nil {
		copyDevices(plan, before)
	}
	var held []admission.HeldDevice
	if !slices.Contains(r.Samples, p) { // the workload may replace a pod that has them
		var err error
		if held, err = heldDevices(r.Dirs, p.Pod); err != nil {
			return err
		}
		held = append(held, r.earlierDevices(p)...)
	}
	if p.Action == upplan.Change {
		return admission.AssignDevices(r.Env, plan, p.Object.Pod, held)
	}
	chosen, err := clonePlan(plan)
	if err == nil {
		err = admission.AssignDevices(r.Env, chosen, p.Object.Pod, held)
	}
	if err != nil {
		return err
	}
	copyDevices(plan, chosen)
	return nil
}

// heldDevices returns the devices of the user's other running pods.
func heldDevices(dirs store.Dirs, but store.Pod) (held []admission.HeldDevice, err error) {
	pods, err := dirs.Pods()
	if err != nil {
		return nil, fmt.Errorf("find free devices: %w", err)
	}
	for _, other := range pods {
		if other.DataDir() == but.DataDir() || !other.Alive() {
			continue
		}
		if plan, err := other.Plan(); err == nil {
			held = append(held, planDevices(plan, podArgument(but, other))...)
		}
	}
	return held, nil
}

// earlierDevices returns the preliminary devices of the pods before p in this run.
func (r *Run) earlierDevices(p *Target) (held []admission.HeldDevice) {
	for _, other := range r.Targets {
		if other == p {
			break
		}
		if other.Plan != nil {
			held = append(held, planDevices(other.Plan, podArgument(p.Pod, other.Pod))...)
		}
	}
	return held
}

func planDevices(plan *pod.Plan, holder string) (held []admission.HeldDevice) {
	for _, list := range plan.All() {
		for _, c := range list {
			for _, name := range c.Devices {
				held = append(held, admission.HeldDevice{Name: name, Pod: holder})
			}
		}
	}
	return held
}

// copyDevices copies the names of the devices of each container.
func copyDevices(to, from *pod.Plan) {
	for _, list := range from.All() {
		for _, c := range list {
			if same, ok := to.Container(c.Name); ok {
				same.Devices = c.Devices
			}
		}
	}
}

func clonePlan(plan *pod.Plan) (*pod.Plan, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	clone := &pod.Plan{}
	return clone, json.Unmarshal(text, clone)
}
