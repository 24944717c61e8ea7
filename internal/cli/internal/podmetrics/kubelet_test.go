package podmetrics

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/node"
)

// TestKubelet checks the metrics of a node agent.
func TestKubelet(t *testing.T) {
	k := Kubelet{NodeName: "attic", RunningPods: 2, Containers: map[string]int{"running": 3, "exited": 1}}
	k.Counts.Terminations = map[node.Termination]int{{ContainerType: "container", ExitCode: 139, Reason: "Error"}: 4}
	k.Counts.Starts = node.Histogram{Buckets: make([]int, len(node.StartBounds)), Count: 3, Sum: 9 * time.Second}
	k.Counts.Starts.Buckets[0], k.Counts.Starts.Buckets[2] = 1, 1
	text := string(k.Text())
	for _, line := range []string{
		`kubelet_node_name{node="attic"} 1`, "kubelet_running_pods 2",
		`kubelet_running_containers{container_state="exited"} 1`, `kubelet_running_containers{container_state="running"} 3`,
		`kubelet_terminated_containers_total{container_type="container",exit_code="139",reason="Error"} 4`,
		"# TYPE kubelet_pod_start_duration_seconds histogram",
		`kubelet_pod_start_duration_seconds_bucket{le="0.5"} 1`, `kubelet_pod_start_duration_seconds_bucket{le="1"} 1`,
		`kubelet_pod_start_duration_seconds_bucket{le="2"} 2`, `kubelet_pod_start_duration_seconds_bucket{le="+Inf"} 3`,
		"kubelet_pod_start_duration_seconds_sum 9", "kubelet_pod_start_duration_seconds_count 3",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing in\n%s", line, text)
		}
	}
}
