package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/cli/internal/podstats"
	"github.com/podrun/podrun/internal/metrics"
)

// reading is a metric of a sample. value returns nil if the kernel does not provide it.
type reading struct {
	metrics.Desc
	value func(*stats.Sample) *float64
}

func counter(name, help string, value func(*stats.Sample) *float64) reading {
	return reading{metrics.Desc{Name: name, Help: help, Type: metrics.Counter}, value}
}

func gauge(name, help string, value func(*stats.Sample) *float64) reading {
	return reading{metrics.Desc{Name: name, Help: help, Type: metrics.Gauge}, value}
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

// ofContainers are the metrics of containers: those of the kubelet (pkg/kubelet/metrics/collectors/resource_metrics.go)
// and of cAdvisor (metrics/prometheus.go).
var ofContainers = []reading{
	counter("container_cpu_usage_seconds_total", "Cumulative cpu time consumed by the container in core-seconds.", func(s *stats.Sample) *float64 { return seconds(s.CPU) }),
	counter("container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.", func(s *stats.Sample) *float64 { return seconds(s.Detail.User) }),
	counter("container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.", func(s *stats.Sample) *float64 { return seconds(s.Detail.System) }),
	counter("container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", func(s *stats.Sample) *float64 { return number(s.Detail.Periods) }),
	counter("container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", func(s *stats.Sample) *float64 { return number(s.Detail.Throttled) }),
	counter("container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", func(s *stats.Sample) *float64 { return seconds(s.Detail.ThrottledTime) }),
	gauge("container_memory_working_set_bytes", "Current working set of the container in bytes.", func(s *stats.Sample) *float64 { return number(s.Memory) }),
	gauge("container_memory_usage_bytes", "Current memory usage in bytes, including all memory regardless of when it was accessed.", func(s *stats.Sample) *float64 { return number(s.Detail.Charged) }),
	gauge("container_memory_rss", "Size of RSS in bytes.", func(s *stats.Sample) *float64 { return number(s.Detail.Anonymous) }),
	gauge("container_memory_cache", "Number of bytes of page cache memory.", func(s *stats.Sample) *float64 { return number(s.Detail.Cache) }),
	gauge("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes.", func(s *stats.Sample) *float64 { return number(s.Detail.PeakMemory) }),
	gauge("container_swap_usage_bytes", "Current amount of the container swap usage in bytes.", func(s *stats.Sample) *float64 { return number(s.Detail.Swap) }),
	counter("container_oom_events_total", "Count of out of memory events observed for the container.", func(s *stats.Sample) *float64 { return number(s.Detail.OOMKills) }),
	counter("container_fs_reads_bytes_total", "Cumulative count of bytes read.", func(s *stats.Sample) *float64 { return number(s.Read) }),
	counter("container_fs_writes_bytes_total", "Cumulative count of bytes written.", func(s *stats.Sample) *float64 { return number(s.Written) }),
	counter("container_fs_reads_total", "Cumulative count of reads completed.", func(s *stats.Sample) *float64 { return number(s.Detail.Reads) }),
	counter("container_fs_writes_total", "Cumulative count of writes completed.", func(s *stats.Sample) *float64 { return number(s.Detail.Writes) }),
	gauge("container_threads", "Number of threads running inside the container.", func(s *stats.Sample) *float64 { return number(s.Pids) }),
	gauge("container_spec_memory_limit_bytes", "Memory limit for the container.", func(s *stats.Sample) *float64 { return number(s.Limits.Memory) }),
	gauge("container_threads_max", "Maximum number of threads allowed inside the container.", func(s *stats.Sample) *float64 { return number(s.Limits.Pids) }),
}

// ofPods are the kubelet's metrics of pods.
var ofPods = []reading{
	counter("pod_cpu_usage_seconds_total", "Cumulative cpu time consumed by the pod in core-seconds.", func(s *stats.Sample) *float64 { return seconds(s.CPU) }),
	gauge("pod_memory_working_set_bytes", "Current working set of the pod in bytes.", func(s *stats.Sample) *float64 { return number(s.Memory) }),
	gauge("pod_swap_usage_bytes", "Current amount of the pod swap usage in bytes.", func(s *stats.Sample) *float64 { return number(s.Detail.Swap) }),
}

var startTime = metrics.Desc{Name: "container_start_time_seconds", Type: metrics.Gauge, Help: "Start time of the container since unix epoch in seconds."}

// ofInterfaces are cAdvisor's metrics of the pod's network interfaces, received and sent.
var ofInterfaces = []struct {
	name, help string
	value      func(stats.Traffic) int64
}{
	{"bytes_total", "Cumulative count of bytes (%s).", func(t stats.Traffic) int64 { return t.Bytes }},
	{"packets_total", "Cumulative count of packets (%s).", func(t stats.Traffic) int64 { return t.Packets }},
	{"packets_dropped_total", "Cumulative count of packets dropped (%s).", func(t stats.Traffic) int64 { return t.Dropped }},
	{"errors_total", "Cumulative count of errors encountered (%s).", func(t stats.Traffic) int64 { return t.Errors }},
}

// addUsage adds the resource usage of a pod.
func addUsage(set *metrics.Set, u *podstats.Usage, p *corev1.Pod) error {
	of := []string{"namespace", p.Namespace, "pod", p.Name}
	add(set, ofPods, &u.Sample, of)
	for _, c := range u.Containers {
		started, image := instance(p, c.Name)
		labels := append([]string{"container", c.Name, "image", image}, of...)
		add(set, ofContainers, &c.Sample, labels)
		if !started.IsZero() {
			set.Add(startTime, float64(started.UnixMilli())/1000, labels...)
		}
	}
	if p.Spec.HostNetwork {
		return nil // the traffic is the host's
	}
	interfaces, err := u.Network()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the process has just ended
	}
	for _, i := range interfaces {
		addTraffic(set, "receive", i.Received, append([]string{"interface", i.Name}, of...))
		addTraffic(set, "transmit", i.Sent, append([]string{"interface", i.Name}, of...))
	}
	return err
}

func add(set *metrics.Set, readings []reading, s *stats.Sample, labels []string) {
	for _, r := range readings {
		if v := r.value(s); v != nil {
			set.Add(r.Desc, *v, labels...)
		}
	}
}

func addTraffic(set *metrics.Set, verb string, t stats.Traffic, labels []string) {
	for _, m := range ofInterfaces {
		d := metrics.Desc{Name: "container_network_" + verb + "_" + m.name, Help: fmt.Sprintf(m.help, verb), Type: metrics.Counter}
		set.Add(d, float64(m.value(t)), labels...)
	}
}

// instance returns when a container's instance was started, and its image.
func instance(p *corev1.Pod, name string) (started time.Time, image string) {
	for _, c := range containerStatuses(p) {
		if c.Name == name {
			if c.State.Running != nil {
				started = c.State.Running.StartedAt.Time
			}
			return started, c.Image
		}
	}
	return started, ""
}
