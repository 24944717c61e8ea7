package podmetrics

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/host"
)

// machine is the usage of the machine.
type machine struct {
	cpu       time.Duration
	memory    int64 // bytes
	available int64 // bytes that processes can get
	rss       int64 // bytes
}

// nodeUsage are the families of the node in the kubelet's /metrics/resource (pkg/kubelet/metrics/collectors).
func nodeUsage() []family[machine] {
	return []family[machine]{
		{"node_cpu_usage_seconds_total", metric.Counter, "Cumulative cpu time consumed by the node in core-seconds", func(n machine) []*metric.Metric { return one(n.cpu.Seconds()) }},
		{"node_memory_working_set_bytes", metric.Gauge, "Current working set of the node in bytes", func(n machine) []*metric.Metric { return one(float64(n.memory)) }},
	}
}

// readNode reads the usage of the machine.
func readNode() (n machine, err error) {
	total, err := host.MemoryTotal()
	if err != nil {
		return n, err
	}
	if n.available, err = host.MemoryAvailable(); err != nil {
		return n, err
	}
	if n.rss, err = host.MemoryAnonymous(); err != nil {
		return n, err
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return n, fmt.Errorf("read the processor's time: %w", err)
	}
	n.memory = total - n.available
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

// addDisk writes cAdvisor's families of file systems (metrics/prometheus.go), for the file system of podrun's data.
func addDisk(out *bytes.Buffer, data string) error {
	disk, err := host.StatFS(data)
	if err != nil {
		return err
	}
	labels := []string{"container", "", "device", host.DeviceOf(data), "id", "/", "image", "", "namespace", "", "pod", ""}
	type fs = host.FileSystem
	writeFamilies(out, []fs{disk}, []family[fs]{
		{"container_fs_limit_bytes", metric.Gauge, "Number of bytes that can be consumed by the container on this filesystem.", func(d fs) []*metric.Metric { return one(float64(d.Size)) }},
		{"container_fs_usage_bytes", metric.Gauge, "Number of bytes that are consumed by the container on this filesystem.", func(d fs) []*metric.Metric { return one(float64(d.Size - d.Free)) }},
		{"container_fs_inodes_total", metric.Gauge, "Number of Inodes", func(d fs) []*metric.Metric { return one(float64(d.Files)) }},
		{"container_fs_inodes_free", metric.Gauge, "Number of available Inodes", func(d fs) []*metric.Metric { return one(float64(d.FreeFiles)) }},
	}, func(fs) []string { return labels })
	return nil
}
