package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"
)

// customKeys are the lists of a container whose items are merged by a field of them, as a
// strategic merge patch of Kubernetes does.
var customKeys = map[string]string{"env": "name", "volumeMounts": "mountPath"}

// Custom merges a part of a container's spec, as YAML or JSON, into an ephemeral container, as
// kubectl debug --custom does. The error is an *Errors, or names what cannot be read.
func Custom(c *corev1.EphemeralContainer, file string, part []byte) error {
	text, err := kyaml.YAMLToJSONStrict(part)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[%s]}}`, text)
	objects, err := Decode(file, []byte(pod)) // it is as strict as with a manifest
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
				wrong.add(&Error{File: file, Field: name, Message: "cannot be set here: options and arguments of debug decide it"})
			}
		}
	}
	if err := wrong.result(); err != nil {
		return err
	}
	base, err := generic(c.EphemeralContainerCommon)
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

// mergeCustom merges maps, and lists that have a key; anything else is replaced, and null
// removes it.
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
		if key, ok := customKeys[name]; ok {
			value = mergeKeyed(to[name], value, key)
		} else {
			value = mergeCustom(to[name], value)
		}
		to[name] = value
	}
	return to
}

func mergeKeyed(base, patch any, key string) any {
	list, _ := base.([]any)
	items, _ := patch.([]any)
	for _, item := range items {
		of := func(v any) any {
			m, _ := v.(map[string]any)
			return m[key]
		}
		at := slices.IndexFunc(list, func(o any) bool { return of(o) == of(item) })
		if at < 0 {
			list = append(list, item)
			continue
		}
		list[at] = mergeCustom(list[at], item)
	}
	return list
}
