package podmetrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/node"
)

// Kubelet is what a node agent knows of itself and its pods.
type Kubelet struct {
	NodeName    string
	RunningPods int
	Containers  map[string]int // their number in each state: running, exited
	Counts      node.Counts
}

// Text returns the metrics of the kubelet's /metrics (pkg/kubelet/metrics) that podrun knows, in the Prometheus text
// format.
func (k *Kubelet) Text() []byte {
	var out bytes.Buffer
	all := []family[*Kubelet]{
		{"kubelet_node_name", metric.Gauge, "The node's name. The count is always 1.", func(k *Kubelet) []*metric.Metric { return one(1, "node", k.NodeName) }},
		{"kubelet_running_pods", metric.Gauge, "Number of pods that have a running pod sandbox", func(k *Kubelet) []*metric.Metric { return one(float64(k.RunningPods)) }},
		{"kubelet_running_containers", metric.Gauge, "Number of containers currently running", func(k *Kubelet) (all []*metric.Metric) {
			for _, state := range slices.Sorted(maps.Keys(k.Containers)) {
				all = append(all, one(float64(k.Containers[state]), "container_state", state)...)
			}
			return all
		}},
		{"kubelet_terminated_containers_total", metric.Counter, "Cumulative number of container terminations.", (*Kubelet).terminations},
	}
	writeFamilies(&out, []*Kubelet{k}, all, func(*Kubelet) []string { return nil })
	const name = "kubelet_pod_start_duration_seconds"
	fmt.Fprintf(&out, "# HELP %s Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run\n# TYPE %s histogram\n", name, name)
	sum := 0
	for i, bound := range node.StartBounds {
		if i < len(k.Counts.Starts.Buckets) {
			sum += k.Counts.Starts.Buckets[i]
		}
		fmt.Fprintf(&out, "%s_bucket{le=%q} %d\n", name, strconv.FormatFloat(bound, 'g', -1, 64), sum)
	}
	n := k.Counts.Starts.Count
	fmt.Fprintf(&out, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, n, name, k.Counts.Starts.Sum.Seconds(), name, n)
	return out.Bytes()
}

func (k *Kubelet) terminations() (all []*metric.Metric) {
	keys := slices.SortedFunc(maps.Keys(k.Counts.Terminations), func(a, b node.Termination) int {
		return cmp.Or(cmp.Compare(a.ContainerType, b.ContainerType), cmp.Compare(a.ExitCode, b.ExitCode), cmp.Compare(a.Reason, b.Reason))
	})
	for _, t := range keys {
		all = append(all, one(float64(k.Counts.Terminations[t]), "container_type", t.ContainerType, "exit_code", strconv.Itoa(int(t.ExitCode)), "reason", t.Reason)...)
	}
	return all
}
