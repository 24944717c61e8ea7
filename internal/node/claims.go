package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/support"
)

// claimsOf returns the claims that a pod mounts, each with whether the claim is made for an ephemeral volume of the pod.
func claimsOf(p *corev1.Pod) map[string]bool {
	claims := map[string]bool{}
	for i := range p.Spec.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			claims[v.PersistentVolumeClaim.ClaimName] = false
		case v.Ephemeral != nil:
			claims[ephemeralClaim(p, v)] = true
		}
	}
	return claims
}

// ephemeralClaim returns the name of the claim of an ephemeral volume (Kubernetes: component-helpers/storage/ephemeral,
// VolumeClaimName).
func ephemeralClaim(p *corev1.Pod, v *corev1.Volume) string { return p.Name + "-" + v.Name }

// checkVolumes returns an error for a volume of a manifest that podrun does not mount.
func checkVolumes(m *corev1.Pod) error {
	for i := range m.Spec.Volumes {
		v := &m.Spec.Volumes[i]
		for _, f := range support.FindPod(&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{*v}}}) {
			if f.Support == support.Refused {
				return &volumeError{fmt.Errorf("MountVolume.SetUp failed for volume %q : podrun does not mount %s: %s", v.Name, strings.TrimPrefix(f.Path, "spec.volumes[0]."), f.Note)}
			}
		}
	}
	return nil
}

// storeClaims stores the claims that a pod mounts, with the volumes to which the API server has bound them. If the API
// server does not answer, the pod starts with the claims that this host has.
func (w *worker) storeClaims(ctx context.Context, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	claims := claimsOf(p)
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		claim, volume, err := w.readClaim(ctx, p, name, claims[name])
		if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) && w.agent.isOffline() {
			continue
		}
		if err == nil {
			err = w.agent.Engine.PutClaim(ctx, claim, volume)
		}
		if err != nil { // kubelet: pkg/kubelet/volumemanager/populator, createVolumeSpec
			return &volumeError{fmt.Errorf("error processing PVC %s/%s: %w", p.Namespace, name, err)}
		}
	}
	return nil
}

// volumeError means that a pod cannot have one of its volumes.
type volumeError struct{ error }

func (e *volumeError) Unwrap() error { return e.error }

// readClaim reads a claim and the volume to which it is bound (kubelet: pkg/kubelet/volumemanager/populator,
// getPVCExtractPV, getPVSpec).
func (w *worker) readClaim(ctx context.Context, p *corev1.Pod, name string, ephemeral bool) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	err := w.agent.Client.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(p.Namespace)+"/persistentvolumeclaims/"+url.PathEscape(name), claim)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("failed to fetch PVC from API server: %w", err)
	case claim.Namespace != p.Namespace || claim.Name != name:
		return nil, nil, errors.New("the API server's answer is another object")
	case ephemeral && !metav1.IsControlledBy(claim, p):
		return nil, nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", p.Namespace, name, p.Namespace, p.Name)
	case claim.DeletionTimestamp != nil:
		return nil, nil, errors.New("PVC is being deleted")
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return nil, nil, errors.New("PVC is not bound")
	case ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem:
		return nil, nil, fmt.Errorf("it has volumeMode %s: podrun mounts file systems", *claim.Spec.VolumeMode)
	}
	if err := w.agent.Client.Get(ctx, "/api/v1/persistentvolumes/"+url.PathEscape(claim.Spec.VolumeName), volume); err != nil {
		return nil, nil, fmt.Errorf("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err)
	}
	switch ref := volume.Spec.ClaimRef; {
	case volume.Name != claim.Spec.VolumeName:
		return nil, nil, errors.New("the API server's answer is another object")
	case ref == nil:
		return nil, nil, fmt.Errorf("found PV object %s with nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", volume.Name)
	case ref.UID != claim.UID || ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		return nil, nil, fmt.Errorf("found PV object %s with a pv.Spec.ClaimRef.UID %s that does not point to claim.UID %s", volume.Name, ref.UID, claim.UID)
	case volume.Spec.HostPath == nil && volume.Spec.Local == nil:
		kinds := strings.Join(apiutil.SetFields(volume.Spec.PersistentVolumeSource), ", ")
		return nil, nil, fmt.Errorf("persistentvolume %s is of kind %s: podrun mounts hostPath and local", volume.Name, kinds)
	}
	return claim, volume, nil
}
