package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/pod"
)

// persistentVolume returns a PersistentVolume with the given fields of its spec.
func persistentVolume(fields string) string {
	return "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk, labels: {type: local}}\nspec: {capacity: {storage: 1Ki}, accessModes: [ReadWriteOnce], " + fields + "}\n"
}

func TestStoredPersistentVolumes(t *testing.T) {
	for fields, want := range map[string]pod.PersistentVolume{
		"storageClassName: manual, hostPath: {path: /data/}":                                      {Class: "manual", ReclaimPolicy: "Retain", Source: "hostPath", Path: "/data"},
		"persistentVolumeReclaimPolicy: Delete, hostPath: {path: /data, type: DirectoryOrCreate}": {ReclaimPolicy: "Delete", Source: "hostPath", Path: "/data", PathType: "DirectoryOrCreate"},
		"local: {path: /disk}, nodeAffinity: {required: {nodeSelectorTerms: [{}]}}":               {ReclaimPolicy: "Retain", Source: "local", Path: "/disk", PathType: "Directory"},
		"claimRef: {namespace: shop, name: data}, nfs: {server: s, path: /}":                      {ReclaimPolicy: "Retain", Source: "nfs", Claim: &pod.ClaimRef{Namespace: "shop", Name: "data"}},
	} {
		o := load(t, persistentVolume(fields)).Stored
		want.Capacity, want.AccessModes = 1024, []string{"ReadWriteOnce"}
		if diff := cmp.Diff(&want, o.PersistentVolume); diff != "" || o.Namespace != "" {
			t.Errorf("%s: %s namespace %q", fields, diff, o.Namespace)
		}
		printed, err := conversion.ToKubernetes(o)
		if err != nil {
			t.Fatal(err)
		}
		again := conversion.FromKubernetes(printed.(*corev1.PersistentVolume))
		if diff := cmp.Diff(o, again); diff != "" {
			t.Errorf("%s: printed and read again: %s", fields, diff)
		}
	}
}

// TestBindingIsKept: a manifest that is applied again does not free a volume that is bound, but removes a
// reservation.
func TestBindingIsKept(t *testing.T) {
	bound := &pod.ClaimRef{Namespace: "default", Name: "data", UID: "1"}
	reserved := &pod.ClaimRef{Namespace: "default", Name: "data"}
	for _, test := range []struct{ old, next, want *pod.ClaimRef }{
		{bound, nil, bound}, {bound, reserved, bound}, {reserved, nil, nil}, {nil, reserved, reserved},
	} {
		old := load(t, persistentVolume("hostPath: {path: /data}")).Stored
		next := load(t, persistentVolume("hostPath: {path: /data}")).Stored
		old.PersistentVolume.Claim, next.PersistentVolume.Claim = test.old, test.next
		conversion.PreserveFrom(old, next)
		if diff := cmp.Diff(test.want, next.PersistentVolume.Claim); diff != "" {
			t.Errorf("%v, %v: %s", test.old, test.next, diff)
		}
	}
}

// TestIsOnNode has one line per rule of node selectors, for the node "here".
func TestIsOnNode(t *testing.T) {
	labels := map[string]string{"kubernetes.io/hostname": "here", "kubernetes.io/os": "linux", "cores": "4"}
	for terms, want := range map[string]bool{
		"{}": false,
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [here, there]}]}":                                                            true,
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [there]}]}":                                                                  false,
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [there]}]}, {matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}": true,
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [here]}, {key: zone, operator: Exists}]}":                                    false,
		"{matchExpressions: [{key: zone, operator: DoesNotExist}, {key: zone, operator: NotIn, values: [a]}]}":                                                true,
		"{matchExpressions: [{key: cores, operator: Gt, values: [\"3\"]}, {key: cores, operator: Lt, values: [\"5\"]}]}":                                      true,
		"{matchExpressions: [{key: cores, operator: Gt, values: [\"4\"]}]}":                                                                                   false,
		"{matchExpressions: [{key: zone, operator: Lt, values: [\"4\"]}]}":                                                                                    false,
		"{matchFields: [{key: metadata.name, operator: In, values: [here]}]}":                                                                                 true,
		"{matchFields: [{key: metadata.name, operator: NotIn, values: [here]}]}":                                                                              false,
	} {
		o := load(t, persistentVolume("local: {path: /disk}, nodeAffinity: {required: {nodeSelectorTerms: ["+terms+"]}}"))
		if got := conversion.IsOnNode(o.Value.(*corev1.PersistentVolume), "here", labels); got != want {
			t.Errorf("%s: %v", terms, got)
		}
	}
	if everywhere := load(t, persistentVolume("hostPath: {path: /data}")); !conversion.IsOnNode(everywhere.Value.(*corev1.PersistentVolume), "here", labels) {
		t.Error("a volume without nodeAffinity is on no node")
	}
}
