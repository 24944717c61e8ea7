package kustomize

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/manifest/kustomize/api"
)

// patch applies a patch, as an API server does (k8s.io/apiserver/pkg/endpoints/handlers/patch.go).
func patch(request api.Patch) api.Result {
	out, err := patched(request)
	if err != nil {
		return api.Result{Problem: err.Error()}
	}
	return api.Result{Output: out}
}

func patched(request api.Patch) ([]byte, error) {
	change, err := yaml.YAMLToJSON(request.Patch)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	request.Patch = change
	switch request.Type {
	case api.JSON:
		p, err := jsonpatch.DecodePatch(request.Patch)
		if err != nil {
			return nil, fmt.Errorf("read the patch, a list of operations: %w", err)
		}
		return p.Apply(request.Object)
	case api.Merge:
		return jsonpatch.MergePatch(request.Object, request.Patch)
	}
	if err := json.Unmarshal(request.Patch, &map[string]any{}); err != nil {
		return nil, fmt.Errorf("read the patch, an object: %w", err)
	}
	kind := structOf(request.Kind)
	if kind == nil {
		return nil, fmt.Errorf("the kind %s has no strategic merge patch: use --type=merge", request.Kind)
	}
	return strategicpatch.StrategicMergePatch(request.Object, request.Patch, kind)
}

// structOf returns the Go type of a kind, whose tags say how lists are merged.
func structOf(kind string) any {
	switch kind {
	case "Pod":
		return corev1.Pod{}
	case "ConfigMap":
		return corev1.ConfigMap{}
	case "Secret":
		return corev1.Secret{}
	case "Service":
		return corev1.Service{}
	case "Namespace":
		return corev1.Namespace{}
	case "Endpoints":
		return corev1.Endpoints{}
	case "ServiceAccount":
		return corev1.ServiceAccount{}
	case "PersistentVolumeClaim":
		return corev1.PersistentVolumeClaim{}
	case "PersistentVolume":
		return corev1.PersistentVolume{}
	case "ReplicationController":
		return corev1.ReplicationController{}
	case "EndpointSlice":
		return discoveryv1.EndpointSlice{}
	case "NetworkPolicy":
		return networkingv1.NetworkPolicy{}
	}
	return structOfWorkload(kind)
}

func structOfWorkload(kind string) any {
	switch kind {
	case "Deployment":
		return appsv1.Deployment{}
	case "ReplicaSet":
		return appsv1.ReplicaSet{}
	case "StatefulSet":
		return appsv1.StatefulSet{}
	case "DaemonSet":
		return appsv1.DaemonSet{}
	case "Job":
		return batchv1.Job{}
	case "CronJob":
		return batchv1.CronJob{}
	}
	return nil
}
