package support

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
)

// badPriorities finds invalid launch priorities.
func badPriorities(list string, containers []corev1.Container) []Finding {
	var found []Finding
	for i, c := range containers {
		first := ""
		for j, e := range c.Env {
			if e.Name != podutil.LaunchPriorityEnv && e.Name != podutil.LaunchPriorityEnvOld {
				continue
			}
			note := ""
			n, err := strconv.Atoi(e.Value)
			switch {
			case list != "containers":
				note = "only app containers have a launch priority: init containers start in their order"
			case e.ValueFrom != nil || err != nil || n < -math.MaxInt32 || n > math.MaxInt32:
				note = fmt.Sprintf("%q is no launch priority: that is an integer from %d to %d", apiutil.Truncate(e.Value, 60), -math.MaxInt32, math.MaxInt32)
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

// PodConflicts finds fields that podrun refuses only because of another field.
func PodConflicts(p *corev1.Pod) []Finding {
	var found []Finding
	for list, containers := range map[string][]corev1.Container{"initContainers": p.Spec.InitContainers, "containers": p.Spec.Containers} {
		found = append(found, badPriorities(list, containers)...)
		for i := range containers {
			prefix := fmt.Sprintf("spec.%s[%d]", list, i)
			found = append(found, missingPorts(prefix, &containers[i])...)
			found = append(found, missingContainers(p, prefix, &containers[i])...)
		}
	}
	return found
}

// missingPorts finds probes and hooks that name a port which the container does not have. A kubelet reports
// this only when it probes.
func missingPorts(prefix string, c *corev1.Container) []Finding {
	var found []Finding
	check := func(path string, p intstr.IntOrString) {
		if _, ok := podutil.ResolveContainerPort(c, p); !ok {
			found = append(found, Finding{Path: prefix + path, Support: Refused,
				Note: fmt.Sprintf("no port of this container has the name %q", apiutil.Truncate(p.StrVal, 60))})
		}
	}
	for name, p := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if p != nil && p.HTTPGet != nil {
			check("."+name+".httpGet.port", p.HTTPGet.Port)
		}
		if p != nil && p.TCPSocket != nil {
			check("."+name+".tcpSocket.port", p.TCPSocket.Port)
		}
	}
	for i, h := range podutil.Hooks(c) {
		if h != nil && h.HTTPGet != nil {
			check(".lifecycle."+[]string{"postStart", "preStop"}[i]+".httpGet.port", h.HTTPGet.Port)
		}
	}
	return found
}

// missingContainers finds variables that refer to a container which the pod does not have. A kubelet reports
// this only when it creates the container.
func missingContainers(p *corev1.Pod, prefix string, c *corev1.Container) []Finding {
	var found []Finding
	for i, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.ResourceFieldRef == nil || e.ValueFrom.ResourceFieldRef.ContainerName == "" {
			continue
		}
		name := e.ValueFrom.ResourceFieldRef.ContainerName
		named := func(c corev1.Container) bool { return c.Name == name }
		if !slices.ContainsFunc(p.Spec.InitContainers, named) && !slices.ContainsFunc(p.Spec.Containers, named) {
			found = append(found, Finding{Path: fmt.Sprintf("%s.env[%d].valueFrom.resourceFieldRef.containerName", prefix, i), Support: Refused,
				Note: fmt.Sprintf("no container of this pod has the name %q", apiutil.Truncate(name, 60))})
		}
	}
	return found
}
