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

import "math"

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
	period    = 100_000 // µs
	minQuota  = 1_000   // µs
	minShares = 2
	maxShares = 262_144

	// The kernel refuses a quota of 2^44 µs and more; this is 88 million CPUs.
	maxQuota = 1 << 43

	maxPids = 4 << 20 // the kernel refuses more (PID_MAX_LIMIT)
)

// Values converts limits as the kubelet does: a request becomes shares (MilliCPUToShares) and those
// a weight, a limit becomes a quota (MilliCPUToQuota), memory is unchanged. A CPU limit without a
// request counts as the request too.
func (l Limits) Values() Values {
	request := l.CPURequest
	if request == 0 {
		request = l.CPULimit
	}
	return Values{
		CPUWeight:  weight(shares(request)),
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

func shares(milli int64) uint64 {
	// Beyond this the product could overflow, and the maximum applies anyway.
	if milli >= maxShares {
		return maxShares
	}
	return uint64(min(max(milli*1024/1000, minShares), maxShares))
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

// weight maps cgroup v1 shares to cgroup v2 weights: the curve through 2 → 1, 1024 → 100 and 262144
// → 10000 that runc and crun share since 2025 (opencontainers/cgroups,
// ConvertCPUSharesToCgroupV2Value). For the pod's own cgroup the kubelet, as late as 1.37, still
// has the straight line from 2 → 1 to 262144 → 10000. Its pods have a slice to themselves; podrun's
// are siblings of other units, whose weight is 100, and on the curve a pod that requests one CPU
// weighs as much.
func weight(shares uint64) uint64 {
	switch {
	case shares <= minShares:
		return 1
	case shares >= maxShares:
		return 10_000
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}
