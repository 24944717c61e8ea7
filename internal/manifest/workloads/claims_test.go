package workloads_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

const claimingSet = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  ordinals: {start: 3}
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: c, image: "busybox:1", volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]}
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data, labels: {tier: gold}, annotations: {a: b}}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// TestClaimsOfAStatefulSet: each pod has its own claims, with the labels by which the set selects its pods;
// their volumes replace volumes of the same name.
func TestClaimsOfAStatefulSet(t *testing.T) {
	set := load(t, claimingSet).Stored
	claims, err := workloads.NewClaims(set, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(claims) != 1 {
		t.Fatalf("%d claims", len(claims))
	}
	got := claims[0]
	want := &pod.Object{
		Kind: pod.KindClaim, Namespace: "shop", Name: "data-db-4", Labels: map[string]string{"tier": "gold", "app": "db"},
		Annotations: map[string]string{"a": "b"}, Claim: &pod.Claim{AccessModes: []string{"ReadWriteOnce"}, Request: 1 << 30}, Spec: got.Spec,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	spec, err := workloads.NewSpec(set)
	if err != nil {
		t.Fatal(err)
	}
	o, err := workloads.NewPod(set, workload.Make{Revision: spec.Revision, Index: 4}, spec.Template, "db-4")
	if err != nil {
		t.Fatal(err)
	}
	volumes := []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-4"}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	if diff := cmp.Diff(volumes, o.Pod.Spec.Volumes); diff != "" {
		t.Error(diff)
	}
}

// TestClaimsAreKnownByTheirNames: a claim's name identifies its set, and whether the set still has such a
// pod.
func TestClaimsAreKnownByTheirNames(t *testing.T) {
	c, err := workloads.ClaimSetOf(load(t, claimingSet).Stored)
	if err != nil {
		t.Fatal(err)
	}
	if c.DeleteWithSet || !c.DeleteWhenScaled {
		t.Errorf("deleted %v, scaled %v", c.DeleteWithSet, c.DeleteWhenScaled)
	}
	for name, want := range map[string]struct {
		ordinal    int
		wanted, ok bool
	}{
		"data-db-3": {3, true, true}, "data-db-4": {4, true, true}, "data-db-5": {5, false, true}, "data-db-0": {0, false, true},
		"data-db-04": {}, "data-db--4": {}, "data-db": {}, "data-db-": {}, "other-db-3": {}, "data-db-x-3": {}, "data-dbx-3": {},
	} {
		ordinal, wanted, ok := c.Ordinal(name)
		if ordinal != want.ordinal || wanted != want.wanted || ok != want.ok {
			t.Errorf("%s: %d, %v, %v", name, ordinal, wanted, ok)
		}
	}
}
