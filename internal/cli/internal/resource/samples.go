package resource

import (
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
)

// SamplePods returns the pods that workloads would create.
func SamplePods(w []manifest.Object) []manifest.Object {
	var list []manifest.Object
	for i := range w {
		list = append(list, *workloads.SamplePod(&w[i]))
	}
	return list
}

// SampleClaims returns the claims that the first pods of StatefulSets get.
func SampleClaims(w []manifest.Object) (list []manifest.Object, err error) {
	for i := range w {
		if w[i].Stored.Kind != pod.KindStatefulSet {
			continue
		}
		claims, err := workloads.NewClaims(w[i].Stored, 0)
		if err != nil {
			return nil, err
		}
		for _, c := range claims {
			list = append(list, manifest.Object{Stored: c})
		}
	}
	return list, nil
}
