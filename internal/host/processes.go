package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Processes returns how many processes and threads the machine can have, and how many there are (kubelet:
// pkg/kubelet/stats/pidlimit).
func Processes() (limit, running int64, err error) {
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, fmt.Errorf("read the limit of processes: %w", err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the limit of processes: %s: %w", file, err)
		}
		if limit == 0 || n < limit {
			limit = n
		}
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 0, fmt.Errorf("count the processes: %w", err)
	}
	if running, err = runningProcesses(string(text)); err != nil {
		return 0, 0, fmt.Errorf("count the processes: %w", err)
	}
	return limit, running, nil
}

// runningProcesses returns the number of processes and threads in the text of /proc/loadavg, such as "0.1 0.2 0.3 2/3518 9".
func runningProcesses(loadavg string) (int64, error) {
	if f := strings.Fields(loadavg); len(f) == 5 {
		if _, all, ok := strings.Cut(f[3], "/"); ok {
			return strconv.ParseInt(all, 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/loadavg has %q", loadavg)
}
