package podmetrics

import (
	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
)

// podLabels are the labels of the kubelet's metrics of a pod.
func podLabels(u podstats.Usage) []string {
	return []string{"namespace", u.Pod.Namespace, "pod", u.Pod.Name}
}

// containerLabels are the labels that the kubelet (/metrics/resource) and cAdvisor give a container.
func containerLabels(u podstats.Usage) []string {
	return []string{"container", u.Name, "namespace", u.Pod.Namespace, "pod", u.Pod.Name, "image", u.Status.Image}
}

// podUsage are the families of pods in the kubelet's /metrics/resource (pkg/kubelet/metrics/collectors).
func podUsage() []family[podstats.Usage] {
	type use = podstats.Usage
	return []family[use]{
		{"pod_cpu_usage_seconds_total", metric.Counter, "Cumulative cpu time consumed by the pod in core-seconds", func(u use) []*metric.Metric { return seconds(u.CPUTotal) }},
		{"pod_memory_working_set_bytes", metric.Gauge, "Current working set of the pod in bytes", func(u use) []*metric.Metric { return number(u.Sample.Memory) }},
	}
}

// containerUsage are the families of containers in the kubelet's /metrics/resource, and cAdvisor's
// (metrics/prometheus.go), with its sources in cgroup v2.
func containerUsage() []family[podstats.Usage] {
	type use = podstats.Usage
	return []family[use]{
		{"container_start_time_seconds", metric.Gauge, "Start time of the container since unix epoch in seconds", func(u use) []*metric.Metric {
			moment := u.Status.State.Running.StartedAt
			if moment.IsZero() {
				return nil
			}
			return one(float64(moment.UnixMilli()) / 1000)
		}},
		{"container_cpu_usage_seconds_total", metric.Counter, "Cumulative cpu time consumed by the container in core-seconds", func(u use) []*metric.Metric { return seconds(u.CPUTotal) }},
		{"container_cpu_user_seconds_total", metric.Counter, "Cumulative user cpu time consumed in seconds.", func(u use) []*metric.Metric { return seconds(u.Sample.User) }},
		{"container_cpu_system_seconds_total", metric.Counter, "Cumulative system cpu time consumed in seconds.", func(u use) []*metric.Metric { return seconds(u.Sample.System) }},
		{"container_cpu_cfs_periods_total", metric.Counter, "Number of elapsed enforcement period intervals.", func(u use) []*metric.Metric { return limited(u, number(u.Sample.Throttle.Periods)) }},
		{"container_cpu_cfs_throttled_periods_total", metric.Counter, "Number of throttled period intervals.", func(u use) []*metric.Metric { return limited(u, number(u.Sample.Throttle.Throttled)) }},
		{"container_cpu_cfs_throttled_seconds_total", metric.Counter, "Total time duration the container has been throttled.", func(u use) []*metric.Metric { return limited(u, seconds(u.Sample.Throttle.Time)) }},
		{"container_memory_working_set_bytes", metric.Gauge, "Current working set of the container in bytes", func(u use) []*metric.Metric { return number(u.Sample.Memory) }},
		{"container_memory_usage_bytes", metric.Gauge, "Current memory usage in bytes, including all memory regardless of when it was accessed", func(u use) []*metric.Metric { return number(u.Sample.Charged) }},
		{"container_memory_max_usage_bytes", metric.Gauge, "Maximum memory usage recorded in bytes", func(u use) []*metric.Metric { return number(u.Sample.Peak) }},
		{"container_memory_rss", metric.Gauge, "Size of RSS in bytes.", func(u use) []*metric.Metric { return number(u.Sample.RSS) }},
		{"container_memory_cache", metric.Gauge, "Number of bytes of page cache memory.", func(u use) []*metric.Metric { return number(u.Sample.Cache) }},
		{"container_memory_mapped_file", metric.Gauge, "Size of memory mapped files in bytes.", func(u use) []*metric.Metric { return number(u.Sample.Mapped) }},
		{"container_memory_total_active_file_bytes", metric.Gauge, "Current total active file in bytes.", func(u use) []*metric.Metric { return number(u.Sample.Active) }},
		{"container_memory_total_inactive_file_bytes", metric.Gauge, "Current total inactive file in bytes.", func(u use) []*metric.Metric { return number(u.Sample.Inactive) }},
		{"container_memory_kernel_usage", metric.Gauge, "Size of kernel memory allocated in bytes.", func(u use) []*metric.Metric { return number(u.Sample.Kernel) }},
		{"container_memory_failures_total", metric.Counter, "Cumulative count of memory allocation failures.", func(u use) []*metric.Metric {
			return append(labelled(number(u.Sample.Faults.All), "failure_type", "pgfault", "scope", "container"), labelled(number(u.Sample.Faults.Major), "failure_type", "pgmajfault", "scope", "container")...)
		}},
		{"container_memory_swap", metric.Gauge, "Container swap usage in bytes.", func(u use) []*metric.Metric { return number(u.Sample.Swap) }},
		{"container_oom_events_total", metric.Counter, "Count of out of memory events observed for the container", func(u use) []*metric.Metric { return number(u.Sample.OOMKills) }},
		{"container_fs_reads_bytes_total", metric.Counter, "Cumulative count of bytes read", func(u use) []*metric.Metric { return number(u.Sample.Read) }},
		{"container_fs_writes_bytes_total", metric.Counter, "Cumulative count of bytes written", func(u use) []*metric.Metric { return number(u.Sample.Written) }},
		{"container_fs_reads_total", metric.Counter, "Cumulative count of reads completed", func(u use) []*metric.Metric { return number(u.Sample.Reads) }},
		{"container_fs_writes_total", metric.Counter, "Cumulative count of writes completed", func(u use) []*metric.Metric { return number(u.Sample.Writes) }},
		{"container_threads", metric.Gauge, "Number of threads running inside the container", func(u use) []*metric.Metric { return number(u.Sample.Pids) }},
		{"container_threads_max", metric.Gauge, "Maximum number of threads allowed inside the container, infinity if value is zero", func(u use) []*metric.Metric { return number(u.Sample.Limits.Pids) }},
		{"container_spec_cpu_period", metric.Gauge, "CPU period of the container.", func(u use) []*metric.Metric { return number(u.Sample.Limits.CPUPeriod) }},
		{"container_spec_cpu_quota", metric.Gauge, "CPU quota of the container.", func(u use) []*metric.Metric { return number(u.Sample.Limits.CPUQuota) }},
		{"container_spec_memory_limit_bytes", metric.Gauge, "Memory limit for the container.", func(u use) []*metric.Metric { return number(u.Sample.Limits.Memory) }},
	}
}

// limited returns a series for a container with a limit of CPU; cAdvisor has no others.
func limited(u podstats.Usage, series []*metric.Metric) []*metric.Metric {
	if u.Sample.Limits.CPUQuota == nil {
		return nil
	}
	return series
}

// network are the interfaces of a pod.
type network struct {
	podstats.Usage
	interfaces []stats.Interface
}

// networkUsage are cAdvisor's families of the network, which belong to a pod: its labels container and image
// are empty.
func networkUsage() []family[network] {
	return append(
		trafficFamilies("receive", "received", "receiving", func(i stats.Interface) stats.Traffic { return i.Receive }),
		trafficFamilies("transmit", "transmitted", "transmitting", func(i stats.Interface) stats.Traffic { return i.Transmit })...)
}

// trafficFamilies are the metric families of received or transmitted traffic; names and texts are made from the forms of the verb.
func trafficFamilies(verb, participle, gerund string, of func(stats.Interface) stats.Traffic) []family[network] {
	each := func(value func(stats.Traffic) int64) func(network) []*metric.Metric {
		return func(n network) (all []*metric.Metric) {
			for _, i := range n.interfaces {
				all = append(all, one(float64(value(of(i))), "image", "", "interface", i.Name)...)
			}
			return all
		}
	}
	prefix := "container_network_" + verb
	return []family[network]{
		{prefix + "_bytes_total", metric.Counter, "Cumulative count of bytes " + participle, each(func(t stats.Traffic) int64 { return t.Bytes })},
		{prefix + "_packets_total", metric.Counter, "Cumulative count of packets " + participle, each(func(t stats.Traffic) int64 { return t.Packets })},
		{prefix + "_packets_dropped_total", metric.Counter, "Cumulative count of packets dropped while " + gerund, each(func(t stats.Traffic) int64 { return t.Dropped })},
		{prefix + "_errors_total", metric.Counter, "Cumulative count of errors encountered while " + gerund, each(func(t stats.Traffic) int64 { return t.Errors })},
	}
}
