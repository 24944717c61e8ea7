package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/pod/podrow"
	"github.com/podrun/podrun/internal/store"
)

// list prints the table of pods.
func list(command string, words []string) (code int, ok bool) {
	o, ok := parseList(command, words)
	if !ok {
		return 0, false
	}
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil || missing(dirs) || dirs.CheckWritable() != nil {
		return 0, false
	}
	handles, err := dirs.Pods()
	if err != nil {
		return 0, false
	}
	for _, p := range handles {
		if p.RemovalInterrupted() || lost(p) { // the CLI finishes the removal, and takes up the pod
			return 0, false
		}
	}
	pods, ok := readPods(podview.Complete(handles, o.namespace, o.all))
	if !ok {
		return 0, false
	}
	if len(pods) == 0 {
		fmt.Fprintln(os.Stderr, podview.NoResources(o.namespace, o.all))
		return 0, true
	}
	var rows [][]string
	add := func(namespace string, row []string) {
		if o.all {
			row = append([]string{namespace}, row...)
		}
		rows = append(rows, row)
	}
	if !o.noHeaders {
		add("NAMESPACE", podrow.Header())
	}
	now := time.Now()
	for i := range pods {
		add(pods[i].Namespace, pods[i].row(now))
	}
	return reportError((&podview.Table{}).Print(os.Stdout, rows)), true
}

// lost reports whether a pod has lost its runtime directory.
func lost(p store.Pod) bool {
	_, is := p.LostRuntime()
	return is
}

// missing reports whether there are killed controllers, or killed commands that were replacing a pod. The
// CLI restarts them.
func missing(dirs store.Dirs) bool {
	if replaced, err := dirs.Replacements(); err != nil || len(replaced) > 0 {
		return true
	}
	return uncontrolled(dirs)
}

// uncontrolled reports whether there are killed controllers.
func uncontrolled(dirs store.Dirs) bool {
	workloads, err := dirs.Workloads("", pod.Workloads()...)
	if err != nil {
		return false // commands that list workloads report it
	}
	for _, w := range workloads {
		if w.ControllerKilled() {
			return true
		}
	}
	return false
}

// podInfo is one pod with its current status, and the parts of its manifest that a row needs.
type podInfo struct {
	store.Pod
	manifest *podview.Manifest
	status   *pod.Status
}

func (k *podInfo) row(now time.Time) []string {
	var plan pod.Plan
	for _, c := range k.manifest.Spec.InitContainers {
		plan.InitContainers = append(plan.InitContainers, pod.Container{Name: c.Name, Sidecar: c.RestartPolicy == string(pod.RestartAlways)})
	}
	for _, c := range k.manifest.Spec.Containers {
		plan.Containers = append(plan.Containers, pod.Container{Name: c.Name})
	}
	line := podrow.New(k.Name, k.manifest.Metadata.CreationTimestamp, &plan, k.status, now)
	return line.Cells()
}

// readPods reads pods, some concurrently. ok is false if the user has to be informed of an error of one of
// them.
func readPods(handles []store.Pod) (pods []podInfo, ok bool) {
	const few = 4 // fewer pods are read sooner than goroutines start
	found := make([]*podInfo, len(handles))
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(handles); i = int(next.Add(1)) - 1 {
			k, err := readPod(handles[i])
			if err != nil && handles[i].Exists() { // otherwise it was removed meanwhile
				failed.Store(true)
			}
			found[i] = k
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(handles)/few) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	for _, k := range found {
		if k != nil {
			pods = append(pods, *k)
		}
	}
	return pods, !failed.Load()
}

// readPod reads one pod.
func readPod(p store.Pod) (*podInfo, error) {
	m, err := podview.ReadManifest(p)
	if err != nil {
		return nil, err
	}
	st, err := podview.StatusOf(p)
	if err != nil {
		return nil, err
	}
	return &podInfo{p, m, st}, nil
}
