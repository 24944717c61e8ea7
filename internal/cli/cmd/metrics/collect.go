package metrics

import (
	"bytes"
	"errors"
	"io"
	"net/http"
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

// collector reads the metrics by the functions of top and get. They only read files, so no supervisor that
// hibernates is started.
type collector struct {
	env  *cmdutil.Env
	dirs store.Dirs

	mu     sync.Mutex // one request at a time: reading takes processor time
	warned string     // the last warning of scrape
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := c.scrape()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(text)
}

// scrape is collect for a server: it prints what cannot be read when that changes.
func (c *collector) scrape() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := c.collect()
	warning := ""
	if err != nil {
		warning = err.Error()
	}
	if warning != "" && warning != c.warned {
		c.env.Warn(err)
	}
	c.warned = warning
	return text
}

// collect returns all metrics in the Prometheus text format. The error joins what cannot be read; the rest is
// returned too.
func (c *collector) collect() ([]byte, error) {
	var out bytes.Buffer
	err := errors.Join(c.addUsage(&out), c.addState(&out))
	writeFamilies(&out, []error{err}, []family[error]{
		{"resource_scrape_error", metric.Gauge, "1 if there was an error while getting container metrics, 0 otherwise", func(err error) []*metric.Metric { return one(oneIf(err != nil)) }},
	}, func(error) []string { return nil })
	return out.Bytes(), err
}

// quiet discards messages, which are meant for the output of a command.
func quiet() *cmdutil.Env { return &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard} }

// addUsage writes what running pods use.
func (c *collector) addUsage(out *bytes.Buffer) error {
	pods, err := (&podstats.View{Env: quiet(), Dirs: c.dirs, AllNamespaces: true}).Sample()
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
func (c *collector) addState(out *bytes.Buffer) error {
	var pods []*corev1.Pod
	var workloads []any
	var errs []error
	for _, kind := range append([]pod.ObjectKind{""}, pod.Workloads()...) { // "": pods
		l, err := printers.List(quiet(), c.dirs, kindnames.Query{Kind: kind}, &printers.PrintOptions{All: true})
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
