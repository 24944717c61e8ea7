package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/internal/manifest/apiutil"
	"github.com/podrun/podrun/internal/manifest/support"
)

// Kind describes one kind of object.
type Kind struct {
	Name       string
	APIVersion string
	New        func() metav1.Object // an empty one, of the Go type
}

// kinds are the supported kinds.
var kinds = []Kind{
	{"Pod", "v1", func() metav1.Object { return &corev1.Pod{} }},
	{"ConfigMap", "v1", func() metav1.Object { return &corev1.ConfigMap{} }},
	{"Secret", "v1", func() metav1.Object { return &corev1.Secret{} }},
	{"PersistentVolumeClaim", "v1", func() metav1.Object { return &corev1.PersistentVolumeClaim{} }},
	{"PersistentVolume", "v1", func() metav1.Object { return &corev1.PersistentVolume{} }},
	{"Service", "v1", func() metav1.Object { return &corev1.Service{} }},
	{"Namespace", "v1", func() metav1.Object { return &corev1.Namespace{} }},
	{"Endpoints", "v1", func() metav1.Object { return &corev1.Endpoints{} }},
	{"EndpointSlice", "discovery.k8s.io/v1", func() metav1.Object { return &discoveryv1.EndpointSlice{} }},
	{"ServiceAccount", "v1", func() metav1.Object { return &corev1.ServiceAccount{} }},
	{"NetworkPolicy", "networking.k8s.io/v1", func() metav1.Object { return &networkingv1.NetworkPolicy{} }},
	{"Deployment", "apps/v1", func() metav1.Object { return &appsv1.Deployment{} }},
	{"ReplicaSet", "apps/v1", func() metav1.Object { return &appsv1.ReplicaSet{} }},
	{"ReplicationController", "v1", func() metav1.Object { return &corev1.ReplicationController{} }},
	{"StatefulSet", "apps/v1", func() metav1.Object { return &appsv1.StatefulSet{} }},
	{"DaemonSet", "apps/v1", func() metav1.Object { return &appsv1.DaemonSet{} }},
	{"Job", "batch/v1", func() metav1.Object { return &batchv1.Job{} }},
	{"CronJob", "batch/v1", func() metav1.Object { return &batchv1.CronJob{} }},
}

// KindOf returns a supported kind.
func KindOf(name string) (Kind, bool) {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i], true
	}
	return Kind{}, false
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// unsupportedKinds are the kinds that often accompany a Pod, with advice for each. For other kinds the
// message lists the supported ones.
var unsupportedKinds = map[string]string{
	"PodTemplate": "write a Pod from its template: apiVersion v1, kind Pod, a name, and the template's spec",
}

// unsupportedKind returns the message for an unsupported kind, with advice. meant is the kind that was
// probably meant, or "".
func unsupportedKind(kind, meant string) string {
	if meant != "" {
		return fmt.Sprintf("there is no kind %s: did you mean %s?", apiutil.Truncate(kind, 60), meant)
	}
	hint, ok := unsupportedKinds[kind]
	if !ok {
		hint = "supported are " + strings.Join(kindNames(), ", ") + "; remove this document"
	}
	return fmt.Sprintf("unsupported kind %s: %s", apiutil.Truncate(kind, 60), hint)
}

// suggestKind returns the kind that was probably meant by an unknown word, or "".
func suggestKind(word string) string {
	if _, other := unsupportedKinds[word]; other {
		return ""
	}
	names := slices.Concat([]string{"List"}, kindNames(), slices.Collect(maps.Keys(unsupportedKinds)))
	for name := range ignoredKinds {
		_, name, _ = strings.Cut(name, "/")
		names = append(names, name)
	}
	return suggest("", word, names)
}

// foreignGroup returns the group of an APIVersion, and whether it is not one of Kubernetes' own: its kinds
// have nothing in common with Kubernetes' kinds of the same name.
func foreignGroup(apiVersion string) (string, bool) {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return group, grouped && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

const (
	noteNoAPIServer = "podrun has no API server"
	noteOneUser     = "a pod has at most the rights of its user"
)

// ignoredKinds are kinds that have a meaning only in a cluster: group and kind, and the reason.
var ignoredKinds = map[string]string{
	"rbac.authorization.k8s.io/Role":                                noteNoAPIServer,
	"rbac.authorization.k8s.io/RoleBinding":                         noteNoAPIServer,
	"rbac.authorization.k8s.io/ClusterRole":                         noteNoAPIServer,
	"rbac.authorization.k8s.io/ClusterRoleBinding":                  noteNoAPIServer,
	"apiextensions.k8s.io/CustomResourceDefinition":                 noteNoAPIServer,
	"apiregistration.k8s.io/APIService":                             noteNoAPIServer,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":     noteNoAPIServer,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   noteNoAPIServer,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        noteNoAPIServer,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": noteNoAPIServer,
	"networking.k8s.io/Ingress":                                     "publish a port with hostPort instead",
	"networking.k8s.io/IngressClass":                                "publish a port with hostPort instead",
	"policy/PodDisruptionBudget":                                    "podrun does not drain its machine",
	"autoscaling/HorizontalPodAutoscaler":                           "podrun does not scale by itself",
	"autoscaling.k8s.io/VerticalPodAutoscaler":                      "podrun does not scale by itself",
	"scheduling.k8s.io/PriorityClass":                               support.NoteScheduling,
	"node.k8s.io/RuntimeClass":                                      "no pod of this file names it",
	"storage.k8s.io/StorageClass":                                   "a PersistentVolumeClaim is a directory here, or a PersistentVolume of its class",
	"/LimitRange":                                                   noteOneUser,
	"/ResourceQuota":                                                noteOneUser,
}

// ignoredKind returns why objects of a kind are ignored, or "".
func ignoredKind(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return ignoredKinds[group+"/"+kind]
}
