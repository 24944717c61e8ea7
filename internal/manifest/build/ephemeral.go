package build

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/pod"
)

// addEphemeral finds added ephemeral containers. An existing one cannot be changed, and stays if new does
// not have it.
func (d *Difference) addEphemeral(old, new []corev1.EphemeralContainer) {
	for i, c := range new {
		index := slices.IndexFunc(old, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
		switch {
		case index < 0:
			d.Ephemeral = append(d.Ephemeral, i)
		case !reflect.DeepEqual(old[index], c):
			d.Immutable = append(d.Immutable, fmt.Sprintf("spec.ephemeralContainers[%d]", i))
		}
	}
}

// MergeEphemeralContainers returns the ephemeral containers of a running pod, with those that a manifest
// adds.
func MergeEphemeralContainers(old, new *corev1.Pod) []corev1.EphemeralContainer {
	list := slices.Clone(old.Spec.EphemeralContainers)
	for _, c := range new.Spec.EphemeralContainers {
		index := slices.IndexFunc(list, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
		if index < 0 {
			list = append(list, c)
			continue
		}
		list[index] = c
	}
	return list
}

// AddEphemeralContainer returns a Plan and its Pod with one more ephemeral container: the one in alone, a
// Plan that was built from a Pod of manifest.LoadEphemeral.
func AddEphemeralContainer(p *corev1.Pod, plan *pod.Plan, c *corev1.EphemeralContainer, alone *pod.Plan) (*corev1.Pod, *pod.Plan) {
	added := alone.Containers[0]
	added.RestartPolicy, added.Target, added.Resources = pod.RestartNever, c.TargetContainerName, pod.Resources{}
	added.OOMScoreAdj = plan.Containers[0].OOMScoreAdj
	next, grown := p.DeepCopy(), *plan
	next.Spec.EphemeralContainers = append(next.Spec.EphemeralContainers, *c)
	grown.Ephemeral = append(slices.Clone(plan.Ephemeral), added)
	return next, &grown
}

// RemoveEphemeralContainers removes the ephemeral containers from a stored Pod, and nothing else: a pod that
// is recreated has none, as with a kubelet.
func RemoveEphemeralContainers(data []byte) ([]byte, error) {
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

// NeedsOwnUserNS reports whether a debug container, the only one of alone, needs a user namespace of its own,
// which the pod does not have (Plan.OwnUserNS). In the shared one it could reach the network of
// the user's other pods, or trace processes that are made for the pod.
func NeedsOwnUserNS(plan, alone *pod.Plan) bool {
	return !plan.OwnUserNS && hasExtraPrivileges(alone.Containers[0])
}
