package node

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podrun/podrun/internal/node/kubeapi"
)

// The node is changed by patches, as by the kubelet (k8s.io/component-helpers/node/util, PatchNodeStatus): other
// components change it at the same time, above all when it joins, and a replacement would conflict with theirs.

// patch sends a strategic merge patch of a node, and stores the result in n.
func patch(ctx context.Context, c *kubeapi.Client, path string, change map[string]any, n *corev1.Node) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	*n = corev1.Node{}
	return c.Patch(ctx, path, types.StrategicMergePatchType, body, n)
}

// metadataPatch returns the patch of the labels and annotations that differ.
func metadataPatch(old, next *corev1.Node) map[string]any {
	return map[string]any{"metadata": map[string]any{
		"labels": mapPatch(old.Labels, next.Labels), "annotations": mapPatch(old.Annotations, next.Annotations),
	}}
}

// mapPatch returns the patch from one map to another: a value that is gone is null.
func mapPatch[K ~string, V any](old, next map[K]V) map[K]any {
	change := map[K]any{}
	for name := range old {
		if _, has := next[name]; !has {
			change[name] = nil
		}
	}
	for name, value := range next {
		if had, has := old[name]; !has || !equality.Semantic.DeepEqual(had, value) {
			change[name] = value
		}
	}
	return change
}

// statusPatch returns the patch of a node's status. Conditions are merged by their types; addresses, of which several
// may have the same type, are replaced.
func statusPatch(old, next *corev1.NodeStatus) map[string]any {
	conditions := slices.DeleteFunc(slices.Clone(next.Conditions), func(c corev1.NodeCondition) bool { return slices.Contains(old.Conditions, c) })
	addresses := []any{}
	for _, a := range next.Addresses {
		addresses = append(addresses, a)
	}
	return map[string]any{"status": map[string]any{
		"capacity": mapPatch(old.Capacity, next.Capacity), "allocatable": mapPatch(old.Allocatable, next.Allocatable),
		"conditions": conditions, "addresses": append(addresses, map[string]any{"$patch": "replace"}),
		"daemonEndpoints": next.DaemonEndpoints, "nodeInfo": next.NodeInfo, "images": next.Images,
	}}
}
