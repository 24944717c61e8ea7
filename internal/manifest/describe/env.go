package describe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
)

// environment writes the sources of values, and never the values of a Secret.
func (p *page) environment(pod *corev1.Pod, c *corev1.Container) {
	if len(c.EnvFrom) > 0 {
		p.row(2, "Environment Variables from:")
	}
	for _, from := range c.EnvFrom {
		p.envFrom(&from)
	}
	if len(c.Env) == 0 {
		p.row(2, "Environment:", none)
		return
	}
	p.row(2, "Environment:")
	for _, v := range c.Env {
		if v.ValueFrom != nil {
			if cells := source(pod, c, v.ValueFrom); cells != nil {
				p.row(3, append([]string{v.Name + ":"}, cells...)...)
			}
			continue
		}
		title := v.Name + ":"
		for _, line := range strings.Split(v.Value, "\n") {
			p.row(3, title, line)
			title = ""
		}
	}
}

// envFrom writes an object all of whose keys are variables.
func (p *page) envFrom(from *corev1.EnvFromSource) {
	var name, kind string
	maybe := optional(nil)
	switch {
	case from.ConfigMapRef != nil:
		name, kind, maybe = from.ConfigMapRef.Name, "ConfigMap", optional(from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		name, kind, maybe = from.SecretRef.Name, "Secret", optional(from.SecretRef.Optional)
	}
	if from.Prefix != "" {
		kind += fmt.Sprintf(" with prefix '%s'", from.Prefix)
	}
	p.row(3, name, kind, "Optional: "+maybe)
}

// source returns the source of a variable's value, in one or two cells.
func source(pod *corev1.Pod, c *corev1.Container, s *corev1.EnvVarSource) []string {
	switch {
	case s.FieldRef != nil:
		return []string{fmt.Sprintf("%s (%s:%s)", fieldOf(pod, s.FieldRef.FieldPath), s.FieldRef.APIVersion, s.FieldRef.FieldPath)}
	case s.ResourceFieldRef != nil:
		return []string{fmt.Sprintf("%s (%s)", resourceOf(c, s.ResourceFieldRef), s.ResourceFieldRef.Resource)}
	case s.SecretKeyRef != nil:
		return []string{fmt.Sprintf("<set to the key '%s' in secret '%s'>", s.SecretKeyRef.Key, s.SecretKeyRef.Name), "Optional: " + optional(s.SecretKeyRef.Optional)}
	case s.ConfigMapKeyRef != nil:
		return []string{fmt.Sprintf("<set to the key '%s' of config map '%s'>", s.ConfigMapKeyRef.Key, s.ConfigMapKeyRef.Name), "Optional: " + optional(s.ConfigMapKeyRef.Optional)}
	case s.FileKeyRef != nil:
		return []string{fmt.Sprintf("<set to the key '%s' of file '%s' in volume '%s'>", s.FileKeyRef.Key, s.FileKeyRef.Path, s.FileKeyRef.VolumeName), "Optional: " + optional(s.FileKeyRef.Optional)}
	}
	return nil
}

// fieldOf returns a field of the pod's metadata; kubectl prints no others.
func fieldOf(pod *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.namespace":
		return pod.Namespace
	}
	of, key, _ := podutil.SplitSubscriptedPath(path)
	return map[string]map[string]string{"metadata.labels": pod.Labels, "metadata.annotations": pod.Annotations}[of][key]
}

// resourceOf returns a container's setting of a resource, divided and rounded up.
func resourceOf(c *corev1.Container, ref *corev1.ResourceFieldSelector) string {
	_, of, _ := strings.Cut(ref.Resource, ".")
	if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, of) && !strings.HasPrefix(of, corev1.ResourceHugePagesPrefix) {
		return ""
	}
	text := podutil.DivideResource(podutil.ReferencedResource(c, ref), ref)
	if text == "0" && (ref.Resource == "limits.cpu" || ref.Resource == "limits.memory") {
		return "node allocatable"
	}
	return text
}
