package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Interface is a network interface with its counters since it was made.
type Interface struct {
	Name              string
	Receive, Transmit Traffic
}

// Traffic is one direction of an interface.
type Traffic struct{ Bytes, Packets, Errors, Dropped int64 }

// ReadNetwork reads the interfaces of a process's network namespace, without the loopback.
func ReadNetwork(pid int) ([]Interface, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net/dev"))
	if err != nil {
		return nil, fmt.Errorf("read network counters: %w", err)
	}
	return parseNetwork(string(text))
}

// parseNetwork parses /proc/PID/net/dev: two lines of headings, then one for each interface.
func parseNetwork(text string) ([]Interface, error) {
	var all []Interface
	for line := range strings.Lines(text) {
		name, numbers, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "lo" {
			continue
		}
		i := Interface{Name: name}
		f := strings.Fields(numbers)
		if len(f) < 12 {
			return nil, fmt.Errorf("read network counters: %.60q is not what the kernel writes", line)
		}
		for column, value := range map[int]*int64{
			0: &i.Receive.Bytes, 1: &i.Receive.Packets, 2: &i.Receive.Errors, 3: &i.Receive.Dropped,
			8: &i.Transmit.Bytes, 9: &i.Transmit.Packets, 10: &i.Transmit.Errors, 11: &i.Transmit.Dropped,
		} {
			var err error
			if *value, err = strconv.ParseInt(f[column], 10, 64); err != nil {
				return nil, fmt.Errorf("read network counters: %w", err)
			}
		}
		all = append(all, i)
	}
	return all, nil
}

// FindInCgroup returns the process of a cgroup that has the number inner in a PID namespace below this one,
// or in this one. ok is false if it has ended.
func FindInCgroup(dir string, inner int) (pid int, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return 0, false
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	if pid, ok = (&Processes{proc: "/proc"}).FindInner(pids, inner); ok {
		return pid, true
	}
	return inner, slices.Contains(pids, inner) // with hostPID
}
