package podclient

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/pod"
)

// defaultContainer is the annotation that names the container which logs and exec
// mean when none is given, as kubectl has it.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// Choose finds the container a command is about: the named one, else the one the
// pod's annotation names, else the first. Of a choice that was made for the user
// among several it says so, in kubectl's words.
func Choose(said io.Writer, p store.Pod, plan *pod.Plan, name string) (*pod.Container, error) {
	if name != "" {
		return Named(plan, name)
	}
	c := &plan.Containers[0]
	if preferred := MetadataOf(p).Annotations[defaultContainer]; preferred != "" {
		if c, err := Named(plan, preferred); err == nil {
			return c, nil
		}
		fmt.Fprintf(said, "Default container name %q not found in pod %s\n", report.Escape(preferred), plan.Name)
	}
	if len(plan.Containers)+len(plan.InitContainers) > 1 {
		fmt.Fprintf(said, "Defaulted container %q out of: %s\n", c.Name, containerNames(plan))
	}
	return c, nil
}

// Named is a container of the plan, or an error that names those there are.
func Named(plan *pod.Plan, name string) (*pod.Container, error) {
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

// Metadata is what is read of a pod's manifest without its types.
type Metadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`

	CreationTimestamp time.Time `json:"creationTimestamp"`
}

// MetadataOf is empty for a pod that is just being removed.
func MetadataOf(p store.Pod) Metadata {
	var m struct {
		Metadata Metadata `json:"metadata"`
	}
	if b, err := p.Manifest(); err != nil || json.Unmarshal(b, &m) != nil {
		return Metadata{}
	}
	return m.Metadata
}
