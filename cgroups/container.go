package cgroups

import (
	"strconv"

	"github.com/podrun/podrun/internal/delegation"
)

// ContainerValues are the cgroup v2 files of a container of the pod, by name, as
// the runtime specification's "unified" wants them: of the controllers there are.
func (p *Pod) ContainerValues(l Limits) map[string]string {
	return l.Values().files(delegation.Subtree(p.subtree).Has)
}

func (v Values) files(has func(controller string) bool) map[string]string {
	f := map[string]string{}
	if has("cpu") {
		f["cpu.weight"] = strconv.FormatUint(v.CPUWeight, 10)
		f["cpu.max"] = "max " + strconv.FormatUint(v.CPUPeriod, 10)
		if v.CPUQuota > 0 {
			f["cpu.max"] = strconv.FormatInt(v.CPUQuota, 10) + " " + strconv.FormatUint(v.CPUPeriod, 10)
		}
	}
	if has("memory") {
		if v.MemoryMax > 0 {
			f["memory.max"] = strconv.FormatInt(v.MemoryMax, 10)
		}
		if v.OOMGroup {
			f["memory.oom.group"] = "1"
		}
	}
	if has("pids") && v.PidsMax > 0 {
		f["pids.max"] = strconv.FormatInt(v.PidsMax, 10)
	}
	return f
}
