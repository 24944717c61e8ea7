package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/pod"
)

// Ephemeral gives a Pod whose one container is an ephemeral one that is to be added to p:
// what is checked of a container's fields, and built of them, is the same. The error is an
// *Errors.
func Ephemeral(p *corev1.Pod, c *corev1.EphemeralContainer) (*Object, error) {
	if slices.Contains(containerNames(p), c.Name) {
		return nil, fmt.Errorf("pod %s has a container %s already", p.Name, c.Name)
	}
	if c.TargetContainerName != "" && !slices.ContainsFunc(p.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.TargetContainerName }) {
		return nil, fmt.Errorf("pod %s has no container %s to be the target", p.Name, c.TargetContainerName)
	}
	alone := p.DeepCopy()
	alone.APIVersion, alone.Kind, alone.Status = "v1", "Pod", corev1.PodStatus{}
	alone.Spec.InitContainers, alone.Spec.EphemeralContainers, alone.Spec.Resources, alone.Spec.Volumes = nil, nil, nil, nil
	alone.Spec.Containers = []corev1.Container{corev1.Container(c.EphemeralContainerCommon)}
	text, err := Marshal(alone)
	if err != nil {
		return nil, err
	}
	objects, err := Load("debug", text)
	if err != nil {
		return nil, err
	}
	return &objects[0], nil
}

// AddEphemeral gives a Plan, and the Pod that it belongs to, with an ephemeral container
// more: the one of alone, a Plan of what Ephemeral gave.
func AddEphemeral(p *corev1.Pod, plan *pod.Plan, c *corev1.EphemeralContainer, alone *pod.Plan) (*corev1.Pod, *pod.Plan) {
	added := alone.Containers[0]
	added.RestartPolicy, added.Target, added.Resources = pod.RestartNever, c.TargetContainerName, pod.Resources{}
	added.OOMScoreAdj = plan.Containers[0].OOMScoreAdj
	next, grown := p.DeepCopy(), *plan
	next.Spec.EphemeralContainers = append(next.Spec.EphemeralContainers, *c)
	grown.Ephemeral = append(slices.Clone(plan.Ephemeral), added)
	return next, &grown
}

// DropEphemeral takes the ephemeral containers out of a stored Pod, and nothing else: one
// that is made anew has none, as with a kubelet, and a manifest cannot ask for any.
func DropEphemeral(data []byte) ([]byte, error) {
	var doc, spec map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	if err := json.Unmarshal(doc["spec"], &spec); err != nil {
		return nil, fmt.Errorf("decode spec of pod: %w", err)
	}
	if _, there := spec["ephemeralContainers"]; !there {
		return data, nil
	}
	delete(spec, "ephemeralContainers")
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode spec of pod: %w", err)
	}
	doc["spec"] = text
	return json.Marshal(doc)
}

// Outreaches says whether a debug container, the one of alone, may try more of what the
// kernel lets a user namespace do than the pod is kept apart for (Plan.Apart): it would
// reach the network of the user's other pods, or seize processes that are made for the pod.
func Outreaches(plan, alone *pod.Plan) bool {
	return !plan.Apart && reachesFar(alone.Containers[0])
}

func containerNames(p *corev1.Pod) (names []string) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers, ephemeral(p)} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}

// ephemeral are a pod's ephemeral containers, as containers.
func ephemeral(p *corev1.Pod) (list []corev1.Container) {
	for _, c := range p.Spec.EphemeralContainers {
		list = append(list, corev1.Container(c.EphemeralContainerCommon))
	}
	return list
}

// ephemeralStatuses are never started in the sense of a startup probe.
func ephemeralStatuses(p *corev1.Pod, st *pod.Status) []corev1.ContainerStatus {
	list := containerStatuses(p, ephemeral(p), st, st.Ephemeral)
	for i := range list {
		list[i].Started = nil
	}
	return list
}
