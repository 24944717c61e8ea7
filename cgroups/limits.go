// Package cgroups converts a pod's limits to cgroup v2 values and manages the pod-level cgroup:
// where it may be made (Delegated), its limits (CreatePod, Resize), its OOM kills (OOMKills) and
// its end (Kill, Remove).
//
//	X                 the delegated subtree (Subtree.Path)
//	|- supervisor     leaf: podrun's own processes, never limited, never killed
//	`- <pod>          cpu.weight, cpu.max, memory.max, pids.max of the whole pod
//	   |- <container> made by libcontainer under ContainerPath
//	   `- …
//
// It supports cgroup v2 only: on a v1 or hybrid host Delegated returns an error, and nothing is
// enforced. The package does not import package pod; it takes Limits.
package cgroups

import "github.com/podrun/podrun/cgroups/weight"

// DefaultPids is pids.max of a pod without a limit of its own. The kubelet sets none, so one fork
// bomb takes down the node; podman gives each container 2048. The same number for the whole pod is
// plenty for a JVM or a build, and still leaves a 1 GiB board (some 8000 threads in all) usable.
const DefaultPids = 2048

// Limits are what a pod or a container may use. Zero means "not set".
type Limits struct {
	CPURequest, CPULimit             int64 // millicores
	MemoryLimit                      int64 // bytes
	MemoryMin, MemoryLow, MemoryHigh int64 // bytes: hard and soft protection, and where reclaim throttles the pod
	Pids                             int64 // processes and threads

	// HugePages is in bytes by page size as the kernel names it: "2MB". A limit of 0 is a limit.
	HugePages map[string]int64
}

// Values are cgroup v2 values. Zero means "leave the kernel's default", except for CPUWeight and
// CPUPeriod, which are always set.
type Values struct {
	CPUWeight  uint64 // cpu.weight, 1…10000
	CPUQuota   int64  // cpu.max, µs of each period
	CPUPeriod  uint64 // cpu.max, µs
	MemoryMax  int64  // memory.max, bytes
	MemoryMin  int64  // memory.min, bytes
	MemoryLow  int64  // memory.low, bytes
	MemoryHigh int64  // memory.high, bytes
	PidsMax    int64  // pids.max
	OOMGroup   bool   // memory.oom.group: for containers only, not for the pod

	HugePages map[string]int64 // hugetlb.<key>.max, bytes
}

// The kubelet's numbers, pkg/kubelet/cm/helpers_linux.go.
const (
	period   = 100_000 // µs
	minQuota = 1_000   // µs

	// The kernel refuses a quota of 2^44 µs and more; this is 88 million CPUs.
	maxQuota = 1 << 43

	maxPids = 4 << 20 // the kernel refuses more (PID_MAX_LIMIT)
)

// Values converts limits as the kubelet does: a request becomes a weight, a limit becomes a quota
// (MilliCPUToQuota), memory is unchanged.
func (l Limits) Values() Values {
	return Values{
		CPUWeight:  weight.CPU(l.CPURequest, l.CPULimit),
		CPUQuota:   quota(l.CPULimit),
		CPUPeriod:  period,
		MemoryMax:  l.MemoryLimit,
		MemoryMin:  l.MemoryMin,
		MemoryLow:  l.MemoryLow,
		MemoryHigh: l.MemoryHigh,
		PidsMax:    min(l.Pids, maxPids),
		OOMGroup:   true,
		HugePages:  l.HugePages,
	}
}

func quota(milli int64) int64 {
	switch {
	case milli <= 0:
		return 0
	case milli > maxQuota/period*1000:
		return maxQuota
	}
	return max(milli*period/1000, minQuota)
}
