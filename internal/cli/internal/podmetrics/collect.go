// Package podmetrics writes the metrics of pods, workloads and sets in the Prometheus text format, under the names of the
// kubelet, cAdvisor and kube-state-metrics.
package podmetrics

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-state-metrics/v2/pkg/metric"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podstats"
	"github.com/podrun/podrun/internal/cli/internal/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
)

// Collector reads the metrics by the functions of top and get. They only read files, so no supervisor that
// hibernates is started.
type Collector struct {
	Env  *cmdutil.Env
	Dirs store.Dirs

	mu     sync.Mutex // one request at a time: reading takes processor time
	warned string     // the last warning of scrape
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := c.scrape()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(text)
}

// scrape is Collect for a server: it prints what cannot be read when that changes.
func (c *Collector) scrape() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := c.Collect()
	warning := ""
	if err != nil {
		warning = err.Error()
	}
	if warning != "" && warning != c.warned {
		c.Env.Warn(err)
	}
	c.warned = warning
	return text
}

// Collect returns all metrics in the Prometheus text format. The error joins what cannot be read; the rest is
// returned too.
func (c *Collector) Collect() ([]byte, error) {
	var out bytes.Buffer
	err := errors.Join(c.addUsage(&out, func(store.Pod) bool { return true }), c.addState(&out), c.addSets(&out))
	writeError(&out, err)
	return out.Bytes(), err
}

// Usage returns the usage of the pods for which selected returns true, and of the node, as the kubelet's
// /metrics/resource and /metrics/cadvisor have it.
func (c *Collector) Usage(selected func(store.Pod) bool) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out bytes.Buffer
	n, err := readNode()
	if err == nil {
		writeFamilies(&out, []machine{n}, nodeUsage(), func(machine) []string { return nil })
		err = addDisk(&out, c.Dirs.Data)
	}
	err = errors.Join(err, c.addUsage(&out, selected))
	writeError(&out, err)
	return out.Bytes(), err
}

// writeError writes the kubelet's metric of a scrape's success.
func writeError(out *bytes.Buffer, err error) {
	writeFamilies(out, []error{err}, []family[error]{
		{"resource_scrape_error", metric.Gauge, "1 if there was an error while getting container metrics, 0 otherwise", func(err error) []*metric.Metric { return one(oneIf(err != nil)) }},
	}, func(error) []string { return nil })
}

// quietEnv returns an Env that discards messages, which are meant for the output of a command.
func quietEnv() *cmdutil.Env { return &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard} }

// addUsage writes the usage of the running pods for which selected returns true.
func (c *Collector) addUsage(out *bytes.Buffer, selected func(store.Pod) bool) error {
	pods, err := (&podstats.View{Env: quietEnv(), Dirs: c.Dirs, AllNamespaces: true}).Sample()
	pods = slices.DeleteFunc(pods, func(u podstats.Usage) bool { return !selected(u.Pod) })
	var containers []podstats.Usage
	var networks []network
	for _, u := range pods {
		containers = append(containers, u.Containers...)
		networks = append(networks, network{u, u.Network()})
	}
	writeFamilies(out, containers, containerUsage(), containerLabels)
	writeFamilies(out, pods, podUsage(), podLabels)
	writeFamilies(out, networks, networkUsage(), func(n network) []string { return append([]string{"container", ""}, podLabels(n.Usage)...) })
	return err
}

// addState writes the state of pods and workloads.
func (c *Collector) addState(out *bytes.Buffer) error {
	var pods []*corev1.Pod
	var workloads []any
	var errs []error
	for _, kind := range append([]pod.ObjectKind{""}, pod.Workloads()...) { // "": pods
		l, err := printers.List(quietEnv(), c.Dirs, kindnames.Query{Kind: kind}, &printers.PrintOptions{All: true})
		errs = append(errs, err)
		if l == nil {
			continue
		}
		for i := range l.Entries {
			object, err := l.Entries[i].Object()
			if p, ok := object.(*corev1.Pod); ok && err == nil {
				pods = append(pods, p)
			} else if err == nil {
				workloads = append(workloads, object)
			}
			errs = append(errs, err)
		}
	}
	writeFamilies(out, pods, podState(), func(p *corev1.Pod) []string {
		return []string{"namespace", p.Namespace, "pod", p.Name, "uid", string(p.UID)}
	})
	writeWorkloads(out, workloads)
	return errors.Join(errs...)
}
