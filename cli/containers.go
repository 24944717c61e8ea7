package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// defaultContainer is the annotation that names the container which logs and exec
// mean when none is given, as kubectl has it.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// planned is the pod that a word means (podOf), with its Plan.
func (f *front) planned(c *cli.Context, word string) (store.Pod, *pod.Plan, error) {
	dirs, err := f.dirs()
	if err != nil {
		return store.Pod{}, nil, err
	}
	p, err := f.podOf(dirs, c.String("namespace"), word)
	if err != nil {
		return p, nil, err
	}
	plan, err := p.Plan()
	return p, plan, err
}

// choose finds the container a command is about: the named one, else the one the
// pod's annotation names, else the first. Of a choice that was made for the user
// among several f says so, in kubectl's words.
func (f *front) choose(p store.Pod, plan *pod.Plan, name string) (*pod.Container, error) {
	if name != "" {
		return named(plan, name)
	}
	c := &plan.Containers[0]
	if preferred := annotation(p, defaultContainer); preferred != "" {
		if c, err := named(plan, preferred); err == nil {
			return c, nil
		}
		fmt.Fprintf(f.err, "Default container name %q not found in pod %s\n", report.Escape(preferred), plan.Name)
	}
	if len(plan.Containers)+len(plan.InitContainers) > 1 {
		fmt.Fprintf(f.err, "Defaulted container %q out of: %s\n", c.Name, containerNames(plan))
	}
	return c, nil
}

func named(plan *pod.Plan, name string) (*pod.Container, error) {
	if c, ok := plan.Container(name); ok {
		return c, nil
	}
	return nil, report.New(report.Failure, "its containers are "+containerNames(plan),
		"container %q not found in pod %q", name, plan.Name)
}

// containerNames lists all containers as kubectl does: apps first.
func containerNames(plan *pod.Plan) string {
	var names []string
	for _, c := range plan.Containers {
		names = append(names, c.Name)
	}
	for _, c := range plan.InitContainers {
		names = append(names, c.Name+" (init)")
	}
	for _, c := range plan.Ephemeral {
		names = append(names, c.Name+" (ephem)")
	}
	return strings.Join(names, ", ")
}

// annotation reads one annotation of the pod's manifest, or "".
func annotation(p store.Pod, key string) string { return metadataOf(p).Annotations[key] }

// metadata is what is read of a pod's manifest without its types.
type metadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// metadataOf is empty for a pod that is just being removed.
func metadataOf(p store.Pod) metadata {
	var m struct {
		Metadata metadata `json:"metadata"`
	}
	if b, err := p.Manifest(); err != nil || json.Unmarshal(b, &m) != nil {
		return metadata{}
	}
	return m.Metadata
}

// isInit says whether a container is in the plan's list of init containers.
func isInit(plan *pod.Plan, name string) bool {
	for _, c := range plan.InitContainers {
		if c.Name == name {
			return true
		}
	}
	return false
}
