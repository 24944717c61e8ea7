package delegation

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Ceiling is what all pods of the user may use together. 0: no limit but the machine's.
type Ceiling struct {
	MilliCPU  int64
	Memory    int64 // bytes
	Processes int64 // and threads

	// AvailableMemory and AvailableProcesses are what is left of the limits; nil: there is none, or that is not known.
	AvailableMemory, AvailableProcesses *int64
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
		number := func(name string) (n int64, ok bool) {
			f := read(name)
			if len(f) != 1 {
				return 0, false
			}
			n, err := strconv.ParseInt(f[0], 10, 64) // or "max"
			return n, err == nil
		}
		memory, limited := number("memory.max")
		lower(&c.Memory, memory, limited)
		if used, ok := workingSet(number, read); ok && limited {
			lowerAvailable(&c.AvailableMemory, memory-used)
		}
		processes, limited := number("pids.max")
		lower(&c.Processes, processes, limited)
		if used, ok := number("pids.current"); ok && limited {
			lowerAvailable(&c.AvailableProcesses, processes-used)
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

// lowerAvailable lowers what is available, but not below 0.
func lowerAvailable(to **int64, n int64) {
	if n = max(n, 0); *to == nil || n < **to {
		*to = &n
	}
}

// workingSet returns the memory of a cgroup without the files that nothing has used lately, as cAdvisor computes it.
func workingSet(number func(string) (int64, bool), read func(string) []string) (bytes int64, ok bool) {
	used, ok := number("memory.current")
	fields := read("memory.stat")
	i := slices.Index(fields, "inactive_file")
	if !ok || i < 0 || i+1 == len(fields) {
		return 0, false
	}
	inactive, err := strconv.ParseInt(fields[i+1], 10, 64)
	return max(used-inactive, 0), err == nil
}
