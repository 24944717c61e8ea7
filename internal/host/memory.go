package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryTotal returns the machine's memory in bytes.
func MemoryTotal() (int64, error) { return readMeminfo("MemTotal") }

// MemoryAvailable returns how much memory processes can get, in bytes.
func MemoryAvailable() (int64, error) { return readMeminfo("MemAvailable") }

// MemoryAnonymous returns how much memory of processes is backed by no file, in bytes.
func MemoryAnonymous() (int64, error) { return readMeminfo("AnonPages") }

func readMeminfo(name string) (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	return meminfo(string(b), name)
}

// meminfo returns a value in the text of /proc/meminfo, in bytes.
func meminfo(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == name+":" && f[2] == "kB" {
			kib, err := strconv.ParseInt(f[1], 10, 53)
			if err != nil {
				return 0, fmt.Errorf("read the machine's memory: %w", err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("read the machine's memory: /proc/meminfo has no %s", name)
}

func (v prober) memory() Finding {
	text, _ := v.read("/proc/meminfo")
	total, err := meminfo(text, "MemTotal")
	if err != nil {
		return warningFinding(err.Error(), "mount /proc")
	}
	return okFinding(fmt.Sprintf("%d MiB", total>>20))
}
