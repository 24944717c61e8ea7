// Package kindnames maps kubectl's names of kinds to kinds of objects.
package kindnames

import (
	"slices"
	"strings"

	"github.com/podrun/podrun/internal/pod"
)

// Kind is a kind of object with the words that name it.
type Kind struct {
	Kind  pod.ObjectKind
	Words []string // the first is used in messages
}

// All returns the stored kinds, with kubectl's words for them.
func All() []Kind {
	return []Kind{
		{pod.KindConfigMap, []string{"configmap", "configmaps", "cm"}},
		{pod.KindSecret, []string{"secret", "secrets"}},
		{pod.KindClaim, []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc"}},
		{pod.KindVolume, []string{"persistentvolume", "persistentvolumes", "pv"}},
		{pod.KindService, []string{"service", "services", "svc"}},
		{pod.KindNamespace, []string{"namespace", "namespaces", "ns"}},
		{pod.KindEndpoints, []string{"endpoints", "ep"}},
		{pod.KindEndpointSlice, []string{"endpointslice.discovery.k8s.io", "endpointslice", "endpointslices", "endpointslices.discovery.k8s.io"}},
		{pod.KindServiceAccount, []string{"serviceaccount", "serviceaccounts", "sa"}},
		{pod.KindNetworkPolicy, []string{"networkpolicy.networking.k8s.io", "networkpolicy", "networkpolicies", "netpol", "networkpolicies.networking.k8s.io"}},
		{pod.KindDeployment, []string{"deployment.apps", "deployment", "deployments", "deploy", "deployments.apps"}},
		{pod.KindReplicaSet, []string{"replicaset.apps", "replicaset", "replicasets", "rs", "replicasets.apps"}},
		{pod.KindReplication, []string{"replicationcontroller", "replicationcontrollers", "rc"}},
		{pod.KindStatefulSet, []string{"statefulset.apps", "statefulset", "statefulsets", "sts", "statefulsets.apps"}},
		{pod.KindDaemonSet, []string{"daemonset.apps", "daemonset", "daemonsets", "ds", "daemonsets.apps"}},
		{pod.KindJob, []string{"job.batch", "job", "jobs", "jobs.batch"}},
		{pod.KindCronJob, []string{"cronjob.batch", "cronjob", "cronjobs", "cj", "cronjobs.batch"}},
	}
}

// IsWorkload reports whether objects of a kind create pods.
func IsWorkload(k pod.ObjectKind) bool { return slices.Contains(pod.Workloads(), k) }

// Of returns the word for a kind.
func Of(k pod.ObjectKind) string {
	for _, o := range All() {
		if o.Kind == k {
			return o.Words[0]
		}
	}
	return string(k)
}

// Plural returns the word for several objects of a kind, as in the paths of the API: pods, deployments. It is the first
// word of the kind that has no group and ends in s.
func Plural(k pod.ObjectKind) string {
	for _, o := range All() {
		if o.Kind != k {
			continue
		}
		for _, word := range o.Words {
			if strings.HasSuffix(word, "s") && !strings.Contains(word, ".") {
				return word
			}
		}
	}
	return "pods"
}

// ParseObjects parses words that name stored objects: a kind and names, or KIND/NAME. ok is false if they
// name something else.
func ParseObjects(words []string) (kind pod.ObjectKind, names []string, ok bool) {
	if len(words) == 0 {
		return "", nil, false
	}
	first, name, slashed := strings.Cut(words[0], "/")
	for _, o := range All() {
		if slices.Contains(o.Words, strings.ToLower(first)) {
			kind, ok = o.Kind, true
		}
	}
	if !slashed {
		return kind, words[1:], ok
	}
	names = []string{name}
	for _, word := range words[1:] {
		names = append(names, strings.TrimPrefix(word, first+"/"))
	}
	return kind, names, ok
}

// Lookup returns the kinds that a word names; nil if it names none. The kind "" stands for pods.
func Lookup(word string) []pod.ObjectKind {
	switch strings.ToLower(word) {
	case "pods", "pod", "po":
		return []pod.ObjectKind{""}
	case "all":
		return append([]pod.ObjectKind{"", pod.KindService}, pod.Workloads()...)
	}
	if kind, _, ok := ParseObjects([]string{word}); ok {
		return []pod.ObjectKind{kind}
	}
	return nil
}

// ParsePods parses words that name pods: pod NAME..., or pod/NAME. ok is false if they have another form.
func ParsePods(words []string) (ok bool, names []string) {
	if len(words) == 0 {
		return false, nil
	}
	if slices.Contains([]string{"pod", "pods", "po"}, words[0]) {
		return true, words[1:]
	}
	for _, kind := range []string{"pod/", "pods/", "po/"} {
		if len(words[0]) > len(kind) && words[0][:len(kind)] == kind {
			return true, words
		}
	}
	return false, nil
}

// Display returns an object's name for messages: configmap/web.
func Display(o *pod.Object) string { return Of(o.Kind) + "/" + o.Name }

// ObjectRef refers to an object; Kind is "" for a pod.
type ObjectRef struct {
	Kind            pod.ObjectKind
	Namespace, Name string
}

// DisplayRef is Display for a reference.
func DisplayRef(r ObjectRef) string {
	if r.Kind == "" {
		return "pod/" + r.Name
	}
	return Of(r.Kind) + "/" + r.Name
}

// Query is what the arguments of get request of one kind.
type Query struct {
	Kind      pod.ObjectKind // "" for pods
	Names     []string       // empty: all
	Namespace string         // of the names; "": the command's
}
