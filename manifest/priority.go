package manifest

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// OpenKruise's names for the order in which app containers are started: the variable
// of its releases, that of its proposal, and the key of a label or an annotation.
const (
	priorityEnv    = "KRUISE_CONTAINER_PRIORITY"
	priorityEnvOld = "KRUISE_CONTAINER_LAUNCH_PRIORITY"
	priorityKey    = "apps.kruise.io/container-launch-priority"
	priorityList   = "Ordered"
)

// launchPriority is an app container's: by its place in the list where the pod says
// so, else by its variable.
func launchPriority(p *corev1.Pod, index int) int {
	if p.Annotations[priorityKey] == priorityList || p.Labels[priorityKey] == priorityList {
		return -index
	}
	for _, e := range p.Spec.Containers[index].Env {
		if e.Name == priorityEnv || e.Name == priorityEnvOld {
			n, _ := strconv.Atoi(e.Value) // what is no number was refused
			return n
		}
	}
	return 0
}

// badPriorities finds what cannot be an order.
func badPriorities(list string, containers []corev1.Container) []Finding {
	var found []Finding
	for i, c := range containers {
		first := ""
		for j, e := range c.Env {
			if e.Name != priorityEnv && e.Name != priorityEnvOld {
				continue
			}
			note := ""
			n, err := strconv.Atoi(e.Value)
			switch {
			case list != "containers":
				note = "only app containers have a launch priority: init containers start in their order"
			case e.ValueFrom != nil || err != nil || n < -math.MaxInt32 || n > math.MaxInt32:
				note = fmt.Sprintf("%q is no launch priority: that is an integer from %d to %d", clip(e.Value, 60), -math.MaxInt32, math.MaxInt32)
			case first != "" && first != e.Value:
				note = "the container has another launch priority, too: " + first
			}
			if first = e.Value; note != "" {
				found = append(found, Finding{Path: fmt.Sprintf("spec.%s[%d].env[%d].value", list, i, j), Support: Refused, Note: note})
			}
		}
	}
	return found
}
