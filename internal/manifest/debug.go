package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kyaml "sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
)

// mergeKeys are the lists of a container whose items are merged by one of their fields, as in a strategic
// merge patch of Kubernetes.
var mergeKeys = map[string]string{"env": "name", "volumeMounts": "mountPath"}

// ApplyCustomProfile merges a part of a container's spec, as YAML or JSON, into an ephemeral container, as
// kubectl debug --custom does. The error is an *Errors, or names what cannot be parsed.
func ApplyCustomProfile(c *corev1.EphemeralContainer, file string, part []byte) error {
	text, err := kyaml.YAMLToJSONStrict(part)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[%s]}}`, text)
	objects, err := Decode(file, []byte(pod)) // as strict as for a manifest
	if err != nil {
		return err
	}
	wrong := &Errors{}
	for _, given := range objects[0].Pod.Spec.Containers {
		for name, set := range map[string]bool{
			"name": given.Name != "", "image": given.Image != "", "command": len(given.Command) > 0,
			"lifecycle": given.Lifecycle != nil, "volumeDevices": len(given.VolumeDevices) > 0,
		} {
			if set {
				wrong.Add(&Error{File: file, Field: name, Message: "cannot be set here: options and arguments of debug decide it"})
			}
		}
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	base, err := apiutil.ToUnstructured(c.EphemeralContainerCommon)
	if err != nil {
		return err
	}
	var patch any
	if err := json.Unmarshal(text, &patch); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	merged, err := json.Marshal(mergeCustom(base, patch))
	if err != nil {
		return fmt.Errorf("encode container: %w", err)
	}
	var common corev1.EphemeralContainerCommon
	if err := json.Unmarshal(merged, &common); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	c.EphemeralContainerCommon = common
	return nil
}

// mergeCustom merges maps, and lists that have a key; any other value is replaced, and null removes it.
func mergeCustom(base, patch any) any {
	to, isMap := base.(map[string]any)
	from, bothMaps := patch.(map[string]any)
	if !isMap || !bothMaps {
		return patch
	}
	for name, value := range from {
		if value == nil {
			delete(to, name)
			continue
		}
		if key, ok := mergeKeys[name]; ok {
			value = mergeList(to[name], value, key)
		} else {
			value = mergeCustom(to[name], value)
		}
		to[name] = value
	}
	return to
}

func mergeList(base, patch any, key string) any {
	list, _ := base.([]any)
	items, _ := patch.([]any)
	for _, item := range items {
		of := func(v any) any {
			m, _ := v.(map[string]any)
			return m[key]
		}
		index := slices.IndexFunc(list, func(o any) bool { return of(o) == of(item) })
		if index < 0 {
			list = append(list, item)
			continue
		}
		list[index] = mergeCustom(list[index], item)
	}
	return list
}

// LoadEphemeral returns a Pod whose one container is an ephemeral container to be added to p. So the same
// code checks and builds its fields. The error is an *Errors.
func LoadEphemeral(p *corev1.Pod, c *corev1.EphemeralContainer) (*Object, error) {
	wrong := &Errors{}
	for _, bad := range validation.ValidateEphemeralFields(c, field.NewPath("spec", "containers").Index(0)) {
		wrong.Add(&Error{File: "debug", Field: bad.Field, Message: bad.ErrorBody()})
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if slices.Contains(podutil.ContainerNames(p), c.Name) {
		return nil, fmt.Errorf("pod %s has a container %s already", p.Name, c.Name)
	}
	if c.TargetContainerName != "" && !slices.ContainsFunc(p.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.TargetContainerName }) {
		return nil, fmt.Errorf("pod %s has no container %s to be the target", p.Name, c.TargetContainerName)
	}
	alone := p.DeepCopy()
	alone.APIVersion, alone.Kind, alone.Status = "v1", "Pod", corev1.PodStatus{}
	alone.Spec.InitContainers, alone.Spec.EphemeralContainers, alone.Spec.Resources = nil, nil, nil
	alone.Spec.Volumes = volumesOf(c, p.Spec.Volumes)
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

// volumesOf returns the volumes that a container uses. All except hostPath volumes become emptyDirs,
// because the pod's own Plan decides their content.
func volumesOf(c *corev1.EphemeralContainer, volumes []corev1.Volume) (list []corev1.Volume) {
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
