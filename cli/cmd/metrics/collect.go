package metrics

import (
	"errors"
	"io"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/podstats"
	"github.com/podrun/podrun/cli/internal/resource"
	"github.com/podrun/podrun/internal/metrics"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
)

// scrapeError is the kubelet's (pkg/kubelet/metrics/collectors/resource_metrics.go).
var scrapeError = metrics.Desc{Name: "resource_scrape_error", Type: metrics.Gauge, Help: "1 if there was an error while getting container metrics, 0 otherwise."}

// collect returns the metrics of all pods. A pod that cannot be read, or is being removed, is left out.
func collect(dirs store.Dirs) (*metrics.Set, error) {
	set := &metrics.Set{}
	pods, err := resource.ListPods(dirs, "", true)
	if err != nil {
		return nil, err
	}
	failed := 0.0
	read := map[store.Pod]*corev1.Pod{}
	for _, p := range pods {
		info, err := resource.LoadPod(p)
		switch {
		case err == nil:
			read[p] = manifest.Render(info.Manifest, info.Status)
			addState(set, read[p])
		case !errors.Is(err, fs.ErrNotExist): // it is not being removed
			failed = 1
		}
	}
	view := podstats.View{Env: &cmdutil.Env{Out: io.Discard, ErrOut: io.Discard}, Dirs: dirs, AllNamespaces: true}
	uses, err := view.Sample()
	if err != nil {
		failed = 1
	}
	for i := range uses {
		if p := read[uses[i].Pod]; p != nil && addUsage(set, &uses[i], p) != nil {
			failed = 1
		}
	}
	set.Add(scrapeError, failed)
	return set, nil
}
