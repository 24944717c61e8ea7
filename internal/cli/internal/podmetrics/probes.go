package podmetrics

import (
	"bytes"
	"errors"
	"strings"

	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/store"
)

// probeCount is the count of a probe's results, with the names of its pod.
type probeCount struct {
	store.ProbeCount
	namespace, pod, uid string
}

// Probes returns how often the probes of living pods have succeeded and failed, as the kubelet's /metrics/probes has it
// (pkg/kubelet/prober). selected returns the UID of a pod, and whether its probes are wanted.
func (c *Collector) Probes(selected func(store.Pod) (uid string, ok bool)) ([]byte, error) {
	var counts []probeCount
	var errs []error
	for p, err := range c.Dirs.EachPod() {
		if err != nil {
			errs = append(errs, err)
			break
		}
		uid, ok := selected(p)
		if !ok || !p.Alive() {
			continue
		}
		list, err := probeCounts(p)
		errs = append(errs, err)
		for _, n := range list {
			counts = append(counts, probeCount{n, p.Namespace, p.Name, uid})
		}
	}
	var out bytes.Buffer
	writeFamilies(&out, counts, []family[probeCount]{
		{"prober_probe_total", metric.Counter, "Cumulative number of a liveness, readiness or startup probe for a container by result.", probeCount.results},
	}, func(n probeCount) []string {
		return []string{"container", n.Container, "namespace", n.namespace, "pod", n.pod, "pod_uid", n.uid, "probe_type", strings.ToUpper(n.Kind[:1]) + n.Kind[1:]}
	})
	return out.Bytes(), errors.Join(errs...)
}

func probeCounts(p store.Pod) ([]store.ProbeCount, error) {
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	return p.ProbeCounts(plan)
}

// results returns the series of the results that a probe has had.
func (n probeCount) results() (all []*metric.Metric) {
	if n.Successful > 0 {
		all = append(all, one(float64(n.Successful), "result", "successful")...)
	}
	if n.Failed > 0 {
		all = append(all, one(float64(n.Failed), "result", "failed")...)
	}
	return all
}
