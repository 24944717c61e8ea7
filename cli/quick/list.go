package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podrun/podrun/cli/internal/podview"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
	"github.com/podrun/podrun/pod/podrow"
)

// list prints the table of pods.
func list(command string, words []string) (code int, ok bool) {
	o, ok := parseList(command, words)
	if !ok {
		return 0, false
	}
	dirs, err := store.UserDirs(os.Getenv)
	if err != nil || missing(dirs) {
		return 0, false
	}
	handles, err := dirs.Pods()
	if err != nil {
		return 0, false
	}
	for _, p := range handles {
		if p.Removing() && !p.Alive() { // the CLI finishes the removal
			return 0, false
		}
	}
	if !o.all {
		var here []store.Pod
		for _, p := range handles {
			if p.Namespace == o.namespace {
				here = append(here, p)
			}
		}
		handles = here
	}
	pods, ok := readPods(handles)
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
		add(pods[i].Metadata.Namespace, pods[i].row(now))
	}
	return ended((&podview.Table{}).Print(os.Stdout, rows)), true
}

// missing reports whether there are killed controllers, or killed commands that were replacing a pod. The
// CLI restarts them whenever pods are listed.
func missing(dirs store.Dirs) bool {
	if replaced, err := dirs.Replacements(); err != nil || len(replaced) > 0 {
		return true
	}
	workloads, err := dirs.Workloads("", pod.Workloads()...)
	if err != nil {
		return false // commands that list workloads report it
	}
	for _, w := range workloads {
		if alive, boot, _ := w.Controller(); !alive && boot == store.BootID() {
			return true
		}
	}
	return false
}

// podInfo is one pod with its current status, and the parts of its manifest that a row needs.
type podInfo struct {
	Metadata struct {
		Name              string    `json:"name"`
		Namespace         string    `json:"namespace"`
		CreationTimestamp time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []container `json:"initContainers"`
		Containers     []container `json:"containers"`
	} `json:"spec"`

	status *pod.Status
}

type container struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"`
}

func (k *podInfo) row(now time.Time) []string {
	var plan pod.Plan
	for _, c := range k.Spec.InitContainers {
		plan.InitContainers = append(plan.InitContainers, pod.Container{Name: c.Name, Sidecar: c.RestartPolicy == string(pod.RestartAlways)})
	}
	for _, c := range k.Spec.Containers {
		plan.Containers = append(plan.Containers, pod.Container{Name: c.Name})
	}
	line := podrow.New(k.Metadata.Name, k.Metadata.CreationTimestamp, &plan, k.status, now)
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

// readPod reads one pod; it returns nil if the pod does not exist.
func readPod(p store.Pod) (*podInfo, error) {
	if !p.Exists() {
		return nil, nil
	}
	text, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	k := &podInfo{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	if k.status, err = podview.StatusOf(p); err != nil {
		return nil, err
	}
	return k, nil
}
