// Package measure has what test/bench and test/netbench share: rounds, medians, memory, waits, and the files of figures.
package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quantities that netbench measures and bench publishes: connections of one byte from another host to a published port, per second,
// and the milliseconds of the processes that forward each.
const (
	ConnectionsIn   = "in: connections/s"
	ConnectionCPUIn = "in: CPU of a connection, ms"
)

// Rounds calls measure for the rounds from first to last, and reports each on standard error.
func Rounds(what string, first, last int, measure func(round int) error) error {
	for round := first; round <= last; round++ {
		if err := measure(round); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s, round %d of %d\n", what, round, last)
	}
	return nil
}

// Milliseconds converts a time with microsecond precision.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Median returns 0 for no values. Of an even number of values it is the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Within calls ready until it returns nil, pausing in between, and returns its last error after the timeout.
func Within(timeout, pause time.Duration, ready func() error) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(pause) {
		if err := ready(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// PSS returns the proportional share of memory of a process, in KiB.
func PSS(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "Pss:" {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("process %d has no Pss", pid)
}

// Save writes figures as JSON; path "" is no file.
func Save(path string, figures any) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
