package cgroups

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/podrun/podrun/internal/delegation"
)

// ContainerValues returns the cgroup v2 files of a container of the pod, by name, as the runtime
// specification's "unified" expects them, for the available controllers.
func (p *Pod) ContainerValues(l Limits) map[string]string {
	f := l.Values().files(delegation.Subtree(p.subtree).Has)
	// As for the pod (noSwap): a container with a memory limit may not swap, where the kernel has the file.
	if _, err := os.Stat(filepath.Join(p.Path(), "memory.swap.max")); err == nil && f["memory.max"] != "" {
		f["memory.swap.max"] = "0"
	}
	return f
}

// files returns the values by the names of their files, for the controllers that has reports.
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
		for file, value := range map[string]int64{"memory.min": v.MemoryMin, "memory.low": v.MemoryLow, "memory.high": v.MemoryHigh} {
			if value > 0 {
				f[file] = strconv.FormatInt(value, 10)
			}
		}
		if v.OOMGroup {
			f["memory.oom.group"] = "1"
		}
	}
	if has("hugetlb") {
		for size, limit := range v.HugePages {
			f["hugetlb."+size+".max"] = strconv.FormatInt(limit, 10)
		}
	}
	if has("pids") && v.PidsMax > 0 {
		f["pids.max"] = strconv.FormatInt(v.PidsMax, 10)
	}
	return f
}
