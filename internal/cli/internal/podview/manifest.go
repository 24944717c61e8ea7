package podview

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/podrun/podrun/internal/store"
)

// Manifest is the part of a pod's manifest that is read without Kubernetes' types.
type Manifest struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		InitContainers []Container `json:"initContainers"`
		Containers     []Container `json:"containers"`
	} `json:"spec"`
}

// Metadata is a pod's metadata, as far as it is read.
type Metadata struct {
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	OwnerReferences   []json.RawMessage `json:"ownerReferences"`
}

// Container is the part of a container that is read.
type Container struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"`
}

// ReadManifest reads the manifest of a pod.
func ReadManifest(p store.Pod) (*Manifest, error) {
	text, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("read manifest of pod %s: %w", p.Name, err)
	}
	return m, nil
}

// MetadataOf returns a pod's metadata, empty for a pod that is being removed.
func MetadataOf(p store.Pod) Metadata {
	m, err := ReadManifest(p)
	if err != nil {
		return Metadata{}
	}
	return m.Metadata
}

// Complete returns the pods of a namespace, or of all, that have a complete record. It reuses the list.
func Complete(pods []store.Pod, namespace string, all bool) []store.Pod {
	return slices.DeleteFunc(pods, func(p store.Pod) bool {
		return !p.Exists() || !all && p.Namespace != namespace
	})
}
