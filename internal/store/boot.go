package store

import (
	"os"
	"strings"
)

// BootID is the kernel's name of this run of the machine, or "" where it tells none.
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
