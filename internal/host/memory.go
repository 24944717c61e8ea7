package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryTotal returns the machine's memory in bytes.
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

func (v prober) memory() Finding {
	text, _ := v.read("/proc/meminfo")
	total, err := memTotal(text)
	if err != nil {
		return warningFinding(err.Error(), "mount /proc")
	}
	return okFinding(fmt.Sprintf("%d MiB", total>>20))
}
