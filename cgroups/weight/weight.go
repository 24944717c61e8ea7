// Package weight converts CPU requests to cpu.weight. It is a package of its own so that commands,
// which pass the weight to systemd, do not link the library for cgroups.
package weight

import (
	"cmp"
	"math"
)

const (
	minShares = 2
	maxShares = 262_144
)

// CPU returns the cpu.weight, 1…10000, for a request and a limit in millicores, 0 for none. A limit
// without a request is the request too (kubelet: MilliCPUToShares, pkg/kubelet/cm/helpers_linux.go).
func CPU(request, limit int64) uint64 { return fromShares(shares(cmp.Or(request, limit))) }

func shares(milli int64) uint64 {
	// Beyond this the product could overflow, and the maximum applies anyway.
	if milli >= maxShares {
		return maxShares
	}
	return uint64(min(max(milli*1024/1000, minShares), maxShares))
}

// fromShares maps cgroup v1 shares to cgroup v2 weights: the curve through 2 → 1, 1024 → 100 and 262144
// → 10000 that runc and crun share since 2025 (opencontainers/cgroups,
// ConvertCPUSharesToCgroupV2Value). For the pod's own cgroup the kubelet, as late as 1.37, still
// has the straight line from 2 → 1 to 262144 → 10000. Its pods have a slice to themselves; podrun's
// are siblings of other units, whose weight is 100, and on the curve a pod that requests one CPU
// weighs as much.
func fromShares(shares uint64) uint64 {
	switch {
	case shares <= minShares:
		return 1
	case shares >= maxShares:
		return 10_000
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}
