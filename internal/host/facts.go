package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryTotal is the machine's memory in bytes.
func MemoryTotal() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	return memTotal(string(b))
}

func memTotal(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 53)
			if err != nil {
				return 0, fmt.Errorf("read the machine's memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read the machine's memory: /proc/meminfo has no MemTotal")
}

func (v view) memory() Finding {
	text, _ := v.read("/proc/meminfo")
	total, err := memTotal(text)
	if err != nil {
		return Finding{Name: "memory", Detail: err.Error(), Cure: "mount /proc"}
	}
	return Finding{Name: "memory", OK: true, Detail: fmt.Sprintf("%d MiB", total>>20)}
}

// seccomp asks for the kernel's system call filter: without it the runtime's
// default profile cannot be loaded.
func (v view) seccomp() Finding {
	f := Finding{Name: "seccomp", Fatal: true}
	if actions, _ := v.read("/proc/sys/kernel/seccomp/actions_avail"); strings.Contains(actions, "errno") {
		f.OK, f.Detail = true, "system call filters are available"
		return f
	}
	f.Detail, f.Cure = "this kernel has no system call filters", "use a kernel with CONFIG_SECCOMP_FILTER"
	return f
}
