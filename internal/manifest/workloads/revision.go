package workloads

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/conversion"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/workload"
)

// ChangeCause is the annotation of a workload that gives the reason of its newest revision.
const ChangeCause = "kubernetes.io/change-cause"

// restartedAt is the annotation of a template that rollout restart changes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// HasRevisions reports whether a kind keeps its old templates, as kinds with a rollout do.
func HasRevisions(kind pod.ObjectKind) bool {
	return slices.Contains([]pod.ObjectKind{pod.KindDeployment, pod.KindStatefulSet, pod.KindDaemonSet}, kind)
}

// TemplateOf returns the template of a revision.
func TemplateOf(r *workload.Revision) (*corev1.PodTemplateSpec, error) {
	var t corev1.PodTemplateSpec
	if err := json.Unmarshal(r.Template, &t); err != nil {
		return nil, fmt.Errorf("decode the template of revision %d: %w", r.Number, err)
	}
	return &t, nil
}

// RollBack gives a workload the template and the change-cause of an earlier revision. unset is
// pod.Object.DefaultedPullPolicies of the stored workload.
func RollBack(object metav1.Object, r *workload.Revision, unset []string) error {
	t, err := TemplateOf(r)
	if err != nil {
		return err
	}
	defaulting.RestoreUnsetPullPolicies(&t.Spec, unset)
	*conversion.PodTemplate(object) = *t
	m := apiutil.ObjectMeta(object)
	delete(m.Annotations, ChangeCause)
	if r.Cause != "" {
		metav1.SetMetaDataAnnotation(m, ChangeCause, r.Cause)
	}
	return nil
}

// RequestRestart changes the template of a workload so that its pods are created again.
func RequestRestart(object metav1.Object, now time.Time) {
	metav1.SetMetaDataAnnotation(&conversion.PodTemplate(object).ObjectMeta, restartedAt, now.Format(time.RFC3339))
}

// SetImages sets images by the names of containers in a Pod or a workload's template; the name "*" stands for
// all containers. It returns a name that no container has, or "".
func SetImages(object metav1.Object, images map[string]string) (missing string) {
	var spec *corev1.PodSpec
	if p, ok := object.(*corev1.Pod); ok {
		spec = &p.Spec
	} else {
		spec = &conversion.PodTemplate(object).Spec
	}
	found := map[string]bool{}
	for c := range podutil.Containers(spec) {
		for _, name := range []string{c.Name, "*"} {
			if image, ok := images[name]; ok {
				c.Image, found[name] = image, true
				break
			}
		}
	}
	for name := range images {
		if !found[name] && name != "*" {
			missing = max(missing, name)
		}
	}
	return missing
}

// Replicas returns the number of replicas of a workload that can be scaled; nil for other objects.
func Replicas(object metav1.Object) *int32 {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec.Replicas
	case *appsv1.ReplicaSet:
		return o.Spec.Replicas
	case *appsv1.StatefulSet:
		return o.Spec.Replicas
	case *corev1.ReplicationController:
		return o.Spec.Replicas
	}
	return nil
}
