package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podrun/podrun/pod"
)

// Ephemeral gives a Pod whose one container is an ephemeral one that is to be added to p:
// what is checked of a container's fields, and built of them, is the same. The error is an
// *Errors.
func Ephemeral(p *corev1.Pod, c *corev1.EphemeralContainer) (*Object, error) {
	wrong := &Errors{}
	for _, bad := range onlyEphemeral(c, field.NewPath("spec", "containers").Index(0)) {
		wrong.add(&Error{File: "debug", Field: bad.Field, Message: bad.ErrorBody()})
	}
	if err := wrong.result(); err != nil {
		return nil, err
	}
	if slices.Contains(containerNames(p), c.Name) {
		return nil, fmt.Errorf("pod %s has a container %s already", p.Name, c.Name)
	}
	if c.TargetContainerName != "" && !slices.ContainsFunc(p.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.TargetContainerName }) {
		return nil, fmt.Errorf("pod %s has no container %s to be the target", p.Name, c.TargetContainerName)
	}
	alone := p.DeepCopy()
	alone.APIVersion, alone.Kind, alone.Status = "v1", "Pod", corev1.PodStatus{}
	alone.Spec.InitContainers, alone.Spec.EphemeralContainers, alone.Spec.Resources = nil, nil, nil
	alone.Spec.Volumes = mountedBy(c, p.Spec.Volumes)
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

// mountedBy are the volumes that a container uses, those that podrun makes as empty ones: what
// is in them is decided in the pod's own Plan.
func mountedBy(c *corev1.EphemeralContainer, volumes []corev1.Volume) (list []corev1.Volume) {
	used := map[string]bool{}
	for _, m := range c.VolumeMounts {
		used[m.Name] = true
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil {
			used[e.ValueFrom.FileKeyRef.VolumeName] = true
		}
	}
	for _, v := range volumes {
		if !used[v.Name] {
			continue
		}
		if v.HostPath == nil {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
		list = append(list, v)
	}
	return list
}

// validateEphemeralContainer is validateEphemeralContainers in pkg/apis/core/validation.
func validateEphemeralContainer(s *corev1.PodSpec, c *corev1.EphemeralContainer, volumes map[string]*corev1.Volume, names sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateContainer((*corev1.Container)(&c.EphemeralContainerCommon), volumes, names, path)
	if t := c.TargetContainerName; t != "" && !slices.ContainsFunc(s.Containers, func(o corev1.Container) bool { return o.Name == t }) {
		errs = append(errs, field.NotFound(path.Child("targetContainerName"), t))
	}
	return append(errs, onlyEphemeral(c, path)...)
}

// onlyEphemeral forbids the fields that an ephemeral container must not have.
func onlyEphemeral(c *corev1.EphemeralContainer, path *field.Path) field.ErrorList {
	const why = "cannot be set for an Ephemeral Container"
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ports", len(c.Ports) > 0},
		{"resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0},
		{"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), why))
		}
	}
	for i, m := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if m.SubPath != "" {
			errs = append(errs, field.Forbidden(at.Child("subPath"), why))
		}
		if m.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(at.Child("subPathExpr"), why))
		}
	}
	return errs
}

// noteEphemeral finds the ephemeral containers that are added. One that is there cannot be
// changed, and stays if new does not have it.
func (d *difference) noteEphemeral(old, new []corev1.EphemeralContainer) {
	for i, c := range new {
		at := slices.IndexFunc(old, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
		switch {
		case at < 0:
			d.Ephemeral = append(d.Ephemeral, i)
		case !reflect.DeepEqual(old[at], c):
			d.Fixed = append(d.Fixed, fmt.Sprintf("spec.ephemeralContainers[%d]", i))
		}
	}
}

// JoinedEphemeral are the ephemeral containers of a pod that runs, with those that a manifest
// adds.
func JoinedEphemeral(old, new *corev1.Pod) []corev1.EphemeralContainer {
	list := slices.Clone(old.Spec.EphemeralContainers)
	for _, c := range new.Spec.EphemeralContainers {
		at := slices.IndexFunc(list, func(o corev1.EphemeralContainer) bool { return o.Name == c.Name })
		if at < 0 {
			list = append(list, c)
			continue
		}
		list[at] = c
	}
	return list
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
// that is made anew has none, as with a kubelet.
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

// containerNames lists the names of all containers, ephemeral ones included.
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
