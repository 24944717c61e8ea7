package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Interface is the traffic of a network interface since it was made.
type Interface struct {
	Name           string
	Received, Sent Traffic
}

// Traffic is the traffic in one direction.
type Traffic struct{ Bytes, Packets, Errors, Dropped int64 }

// ReadNetwork returns the traffic of the interfaces, except loopback, in the network namespace of a process.
func ReadNetwork(pid int) ([]Interface, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net/dev"))
	if err != nil {
		return nil, fmt.Errorf("read the traffic of process %d: %w", pid, err)
	}
	return parseNetwork(string(text))
}

// parseNetwork parses /proc/net/dev: after two lines of header, an interface in each line, with 8 numbers
// for each direction.
func parseNetwork(text string) ([]Interface, error) {
	var list []Interface
	for line := range strings.Lines(text) {
		name, numbers, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name == "lo" {
			continue
		}
		var n [16]int64
		fields := strings.Fields(numbers)
		if len(fields) < len(n) {
			return nil, fmt.Errorf("read traffic: %.60q is not what the kernel writes", line)
		}
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
				return nil, fmt.Errorf("read traffic: %.60q is not what the kernel writes", line)
			}
		}
		list = append(list, Interface{name, Traffic{n[0], n[1], n[2], n[3]}, Traffic{n[8], n[9], n[10], n[11]}})
	}
	return list, nil
}

// FirstProcess returns a process of a cgroup; 0: it has none.
func FirstProcess(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}
