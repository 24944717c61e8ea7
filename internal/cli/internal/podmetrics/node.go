package podmetrics

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/host"
)

// node is the usage of the machine.
type node struct {
	cpu    time.Duration
	memory int64 // bytes
}

// nodeUsage are the families of the node in the kubelet's /metrics/resource (pkg/kubelet/metrics/collectors).
func nodeUsage() []family[node] {
	return []family[node]{
		{"node_cpu_usage_seconds_total", metric.Counter, "Cumulative cpu time consumed by the node in core-seconds", func(n node) []*metric.Metric { return one(n.cpu.Seconds()) }},
		{"node_memory_working_set_bytes", metric.Gauge, "Current working set of the node in bytes", func(n node) []*metric.Metric { return one(float64(n.memory)) }},
	}
}

// readNode reads the usage of the machine.
func readNode() (n node, err error) {
	total, err := host.MemoryTotal()
	if err != nil {
		return n, err
	}
	free, err := host.MemoryAvailable()
	if err != nil {
		return n, err
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return n, fmt.Errorf("read the processor's time: %w", err)
	}
	n.memory = total - free
	n.cpu, err = busyTime(string(text))
	return n, err
}

// busyTime returns how long the processors have worked, from the text of /proc/stat: its first line counts, in
// hundredths of a second, user, nice, system, idle, iowait, irq, softirq and steal (proc_stat(5)).
func busyTime(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("read the processor's time: %.60q is not what the kernel writes", line)
	}
	var busy time.Duration
	for i, f := range fields[1:9] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the processor's time: %w", err)
		}
		if idle := i == 3 || i == 4; !idle {
			busy += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return busy, nil
}
