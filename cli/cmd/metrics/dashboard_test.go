package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cgroups/stats"
	"github.com/podrun/podrun/internal/metrics"
)

// exported returns the names of all metrics of pods.
func exported() map[string]bool {
	set := &metrics.Set{}
	one := new(int64(1))
	at := new(time.Second)
	sample := &stats.Sample{CPU: at, Memory: one, Pids: one, Read: one, Written: one, Limits: stats.Limits{CPU: one, Memory: one, Pids: one},
		Detail: stats.Detail{User: at, System: at, Periods: one, Throttled: one, ThrottledTime: at, Charged: one, Anonymous: one, Cache: one, Swap: one,
			PeakMemory: one, OOMKills: one, Reads: one, Writes: one}}
	add(set, ofPods, sample, nil)
	add(set, ofContainers, sample, nil)
	addTraffic(set, "receive", stats.Traffic{}, nil)
	addTraffic(set, "transmit", stats.Traffic{}, nil)
	addState(set, &corev1.Pod{Status: corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady}},
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{}, Terminated: &corev1.ContainerStateTerminated{}}}},
	}})
	names := map[string]bool{}
	for _, f := range set.Families {
		names[f.Name] = true
	}
	return names
}

// TestDashboard: every metric that the dashboard queries is exported.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../docs/how-to/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := exported()
	metric := regexp.MustCompile(`\b(container|pod|kube)_[a-z_]+`)
	for _, p := range dashboard.Panels {
		used := 0
		for _, target := range p.Targets {
			for _, name := range metric.FindAllString(target.Expr, -1) {
				used++
				if !names[name] {
					t.Errorf("%s: %s is not exported", p.Title, name)
				}
			}
		}
		if used == 0 {
			t.Errorf("%s queries nothing", p.Title)
		}
	}
}
