package delegation

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ceiling is what all pods of the user may use together. 0: no limit but the machine's.
type Ceiling struct {
	MilliCPU int64
	Memory   int64 // bytes
}

// FindCeiling returns the smallest limits of the cgroups above the calling process's own: the limits of the user's slice,
// for example. The process's own limits do not apply to pods.
func FindCeiling() Ceiling { return host(nil).ceiling() }

func (v hostView) ceiling() (c Ceiling) {
	dir, err := v.cgroupOf("self")
	if err != nil { // there are no limits in cgroup v2
		return c
	}
	lower := func(to *int64, limit int64, limited bool) {
		if limited && (*to == 0 || limit < *to) {
			*to = limit
		}
	}
	for dir != Mount {
		dir = filepath.Dir(dir)
		read := func(name string) []string { // the root has none of these files
			text, _ := os.ReadFile(filepath.Join(v.root, dir, name))
			return strings.Fields(string(text))
		}
		if f := read("memory.max"); len(f) == 1 {
			bytes, err := strconv.ParseInt(f[0], 10, 64) // or "max"
			lower(&c.Memory, bytes, err == nil)
		}
		if f := read("cpu.max"); len(f) == 2 { // microseconds in each period
			quota, err := strconv.ParseInt(f[0], 10, 64)
			period, periodErr := strconv.ParseInt(f[1], 10, 64)
			limited := err == nil && periodErr == nil && period > 0
			if limited {
				quota = quota * 1000 / period
			}
			lower(&c.MilliCPU, quota, limited)
		}
	}
	return c
}
