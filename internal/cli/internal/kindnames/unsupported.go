package kindnames

import (
	"cmp"
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/report"
)

// UnknownError is the error for a word of `get` that is no kind.
func UnknownError(word string) error {
	return report.New(report.Usage, cmp.Or(UnsupportedHint(word), "podrun get --help lists the kinds"), "unknown kind %q", word)
}

// UnsupportedError returns the error for one of kubectl's words for a kind that podrun does not support;
// nil for any other word.
func UnsupportedError(word string) error {
	k := Unsupported(word)
	if k == nil {
		return nil
	}
	return report.New(report.Usage, k.Hint, "podrun does not store %s objects", k.kind)
}

// UnsupportedHint returns where to find the equivalent of a kind that podrun does not have; "" if the
// words may be names of pods.
func UnsupportedHint(word string) string {
	if k := Unsupported(word); k != nil {
		return k.Hint
	}
	return ""
}

// UnsupportedKind is a kind of Kubernetes that podrun does not store.
type UnsupportedKind struct {
	kind, Hint string
	words      string // kubectl's: singular, plural, short
}

// Unsupported returns the unsupported kind that a word names, with or without its group; nil if it names
// none.
func Unsupported(word string) *UnsupportedKind {
	word, _, _ = strings.Cut(strings.ToLower(word), "/")
	if bare, group, ok := strings.Cut(word, "."); ok && (strings.HasSuffix(group, ".k8s.io") || slices.Contains([]string{"autoscaling", "policy", "apps"}, group)) {
		word = bare
	}
	for _, k := range unsupportedKinds() {
		if slices.Contains(strings.Fields(k.words), word) {
			return &k
		}
	}
	return nil
}

func unsupportedKinds() []UnsupportedKind {
	const (
		noServer   = "podrun has no API server: a pod has at most the rights of its user"
		noScaling  = "podrun does not scale by itself: set replicas in the manifest"
		oneRuntime = "podrun has one runtime and no priorities"
		ports      = "a hostPort of a pod or a Service of type NodePort opens a port"
		claims     = "podrun get pvc shows the claims, podrun volume ls the volumes"
		bounds     = "set limits in the manifest; podrun top shows the usage"
	)
	return []UnsupportedKind{
		{"Event", "podrun events shows the events", "event events ev"},
		{"Node", "there is one node: podrun doctor checks this machine", "node nodes no"},
		{"Ingress", ports, "ingress ingresses ing"},
		{"IngressClass", ports, "ingressclass ingressclasses"},
		{"HorizontalPodAutoscaler", noScaling, "horizontalpodautoscaler horizontalpodautoscalers hpa"},
		{"PodDisruptionBudget", "a single machine cannot be drained while pods run on it", "poddisruptionbudget poddisruptionbudgets pdb"},
		{"StorageClass", claims, "storageclass storageclasses sc"},
		{"Role", noServer, "role roles"},
		{"RoleBinding", noServer, "rolebinding rolebindings"},
		{"ClusterRole", noServer, "clusterrole clusterroles"},
		{"ClusterRoleBinding", noServer, "clusterrolebinding clusterrolebindings"},
		{"CustomResourceDefinition", noServer, "customresourcedefinition customresourcedefinitions crd crds"},
		{"APIService", noServer, "apiservice apiservices"},
		{"CertificateSigningRequest", noServer, "certificatesigningrequest certificatesigningrequests csr"},
		{"MutatingWebhookConfiguration", noServer, "mutatingwebhookconfiguration mutatingwebhookconfigurations"},
		{"ValidatingWebhookConfiguration", noServer, "validatingwebhookconfiguration validatingwebhookconfigurations"},
		{"Lease", noServer, "lease leases"},
		{"ComponentStatus", "podrun doctor checks this machine", "componentstatus componentstatuses cs"},
		{"LimitRange", bounds, "limitrange limitranges limits"},
		{"ResourceQuota", bounds, "resourcequota resourcequotas quota"},
		{"PriorityClass", oneRuntime, "priorityclass priorityclasses pc"},
		{"RuntimeClass", oneRuntime, "runtimeclass runtimeclasses"},
		{"ControllerRevision", "podrun get deployments,sts,ds shows the workloads", "controllerrevision controllerrevisions"},
		{"PodTemplate", "podrun get deployments,rs shows the workloads", "podtemplate podtemplates"},
	}
}
