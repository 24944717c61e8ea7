package podclient

import (
	"fmt"
	"io"
	"strings"

	"github.com/podrun/podrun/internal/cli/internal/podview"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// defaultContainer is kubectl's annotation with the container that logs and exec use when none is named.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// ChooseContainer returns the container for a command: the named one, else the container of the pod's
// annotation, else the first. If it chooses among several containers it reports that, in kubectl's words.
func ChooseContainer(out io.Writer, p store.Pod, plan *pod.Plan, name string) (*pod.Container, error) {
	if name != "" {
		return Named(plan, name)
	}
	c := &plan.Containers[0]
	if preferred := podview.MetadataOf(p).Annotations[defaultContainer]; preferred != "" {
		if c, err := Named(plan, preferred); err == nil {
			return c, nil
		}
		fmt.Fprintf(out, "Default container name %q not found in pod %s\n", report.Escape(preferred), plan.Name)
	}
	if len(plan.Containers)+len(plan.InitContainers) > 1 {
		fmt.Fprintf(out, "Defaulted container %q out of: %s\n", c.Name, containerNames(plan))
	}
	return c, nil
}

// Named returns a container of the plan, or an error with the names of all.
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
