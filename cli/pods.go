package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

const defaultNamespace = "default"

func namespaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: defaultNamespace, Usage: "the pod's `NAMESPACE` (\"default\" if not given)"}
}

// place is where the pod that the user named would be. Words that cannot be names
// never reach the file system: there is no such pod.
func place(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	name := word
	for _, kind := range []string{"pod/", "pods/", "po/"} {
		if rest, ok := strings.CutPrefix(word, kind); ok {
			name = rest
			break
		}
	}
	if kind, _, known := objectWords([]string{name}); known && strings.Contains(name, "/") {
		return store.Pod{}, report.New(report.Failure, "podrun get "+kindWord(kind)+" shows those there are, podrun ps the pods", "%q does not name a pod", word)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return store.Pod{}, notFound(namespace, name)
	}
	return dirs.Pod(namespace, name), nil
}

// existing is place for a pod that is there.
func existing(dirs store.Dirs, namespace, word string) (store.Pod, error) {
	p, err := place(dirs, namespace, word)
	if err == nil && !p.Exists() {
		err = noPod(dirs, p)
	}
	return p, err
}

// traces says whether anything is left of a pod, be it half made.
func traces(p store.Pod) bool {
	for _, dir := range []string{p.DataDir(), p.RuntimeDir()} {
		if _, err := os.Stat(dir); err == nil {
			return true
		}
	}
	return false
}

// noPod is the error for a pod that is not there, of whose name something may be that
// makes pods.
func noPod(dirs store.Dirs, p store.Pod) error {
	for _, kind := range pod.Workloads() {
		if w, err := dirs.Workload(kind, p.Namespace, p.Name); err == nil {
			if _, err := w.Object(); err == nil {
				return report.New(report.Failure, "did you mean "+kindWord(kind)+"/"+p.Name+"?", "pod %q not found", p.Name)
			}
		}
	}
	return notFound(p.Namespace, p.Name)
}

func notFound(namespace, name string) error {
	kind, _, _ := strings.Cut(name, "/")
	if namespace == defaultNamespace {
		return report.New(report.Failure, cmp.Or(foreign(kind), "podrun ps lists the pods"), "pod %q not found", name)
	}
	return report.New(report.Failure, "podrun ps -A lists the pods of all namespaces", "pod %q not found in namespace %q", name, namespace)
}

// statusOf is what is known of a pod now. A pod whose processes are gone without
// its supervisor having said so has been killed: see lost.
func statusOf(p store.Pod) (*pod.Status, error) {
	alive := p.Alive() // first: the last status is written before the processes end
	st, err := p.Status()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st = &pod.Status{Version: pod.StatusVersion, Phase: pod.Pending}
	case err != nil:
		return nil, err
	}
	if !alive && !st.Phase.Terminal() {
		plan, err := p.Plan()
		if err != nil {
			return nil, err
		}
		st = lost(p, plan, st)
	}
	return st, nil
}

const (
	lostReason  = "ContainerStatusUnknown" // the kubelet's word for it
	lostMessage = "The container could not be located when the pod's processes were found gone"
	// lostCode is what the kubelet gives a container that it lost.
	lostCode = 137
)

// lost is the status of a pod whose processes were killed from outside or went
// down with the machine: it has failed, and nobody saw its containers end.
func lost(p store.Pod, plan *pod.Plan, st *pod.Status) *pod.Status {
	out := *st
	out.Phase = pod.Failed
	out.Message = whyLost(p)
	if plan.RestartPolicy != pod.RestartNever || !hasRun(p, plan) {
		out.Message += "; podrun up goes on with the pod"
	}
	end := func(have []pod.ContainerStatus, of []pod.Container) []pod.ContainerStatus {
		list := make([]pod.ContainerStatus, len(of))
		for i, c := range of {
			list[i] = pod.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.ImageID, RestartCount: max(latestRun(p, c.Name), 0)}
			if i < len(have) {
				list[i] = have[i]
			}
			gone(&list[i])
		}
		return list
	}
	out.InitContainers = end(st.InitContainers, plan.InitContainers)
	out.Containers = end(st.Containers, plan.Containers)
	out.Conditions = nil
	for _, c := range st.Conditions {
		if c.Type == "Ready" || c.Type == "ContainersReady" {
			c.Status, c.Reason = "False", "PodFailed"
		}
		out.Conditions = append(out.Conditions, c)
	}
	return &out
}

func gone(c *pod.ContainerStatus) {
	if c.State.Terminated != nil {
		return
	}
	end := &pod.Terminated{ExitCode: lostCode, Reason: lostReason, Message: lostMessage, ContainerID: c.ContainerID}
	if c.State.Running != nil {
		end.StartedAt = c.State.Running.StartedAt
	}
	c.State, c.Ready, c.Started = pod.State{Terminated: end}, false, false
}
