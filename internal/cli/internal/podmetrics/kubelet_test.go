package podmetrics

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/node"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
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

// TestProbeResults checks the series of a probe: a result that it has not had has none.
func TestProbeResults(t *testing.T) {
	dirs := store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}
	p := dirs.Pod("default", "web")
	plan := &pod.Plan{Name: "web", Containers: []pod.Container{{Name: "main"}}}
	lock, err := p.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := p.Create(plan, nil); err != nil {
		t.Fatal(err)
	}
	counters, err := p.OpenProbeCounters(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer counters.Close()
	for range 2 {
		if err := store.CountProbe(counters, store.ProbeCounter(plan, "main", "liveness")); err != nil {
			t.Fatal(err)
		}
	}
	c := Collector{Dirs: dirs}
	text, err := c.Probes(func(store.Pod) (string, bool) { return "1", true })
	const want = `prober_probe_total{container="main",namespace="default",pod="web",pod_uid="1",probe_type="Liveness",result="successful"} 2`
	if err != nil || strings.Count(string(text), "prober_probe_total{") != 1 || !strings.Contains(string(text), "# TYPE prober_probe_total counter\n"+want+"\n") {
		t.Errorf("%s, %v", text, err)
	}
}
