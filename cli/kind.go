package cli

import (
	"slices"

	"github.com/podrun/podrun/pod"
)

// objectKind is a kind of object as words name it.
type objectKind struct {
	kind  pod.ObjectKind
	words []string // the first is what messages say
}

// objectKinds are the kinds that are kept, with kubectl's words for them.
func objectKinds() []objectKind {
	return []objectKind{
		{pod.KindConfigMap, []string{"configmap", "configmaps", "cm"}},
		{pod.KindSecret, []string{"secret", "secrets"}},
		{pod.KindClaim, []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc"}},
		{pod.KindService, []string{"service", "services", "svc"}},
		{pod.KindNamespace, []string{"namespace", "namespaces", "ns"}},
		{pod.KindDeployment, []string{"deployment.apps", "deployment", "deployments", "deploy", "deployments.apps"}},
		{pod.KindReplicaSet, []string{"replicaset.apps", "replicaset", "replicasets", "rs", "replicasets.apps"}},
		{pod.KindStatefulSet, []string{"statefulset.apps", "statefulset", "statefulsets", "sts", "statefulsets.apps"}},
		{pod.KindDaemonSet, []string{"daemonset.apps", "daemonset", "daemonsets", "ds", "daemonsets.apps"}},
		{pod.KindJob, []string{"job.batch", "job", "jobs", "jobs.batch"}},
		{pod.KindCronJob, []string{"cronjob.batch", "cronjob", "cronjobs", "cj", "cronjobs.batch"}},
	}
}

// makesPods says whether objects of a kind make pods.
func makesPods(k pod.ObjectKind) bool { return slices.Contains(pod.Workloads(), k) }

// kindWord is the word for a kind.
func kindWord(k pod.ObjectKind) string {
	for _, o := range objectKinds() {
		if o.kind == k {
			return o.words[0]
		}
	}
	return string(k)
}
