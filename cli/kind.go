package cli

import "github.com/podrun/podrun/pod"

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
	}
}

// kindWord is the word for a kind.
func kindWord(k pod.ObjectKind) string {
	for _, o := range objectKinds() {
		if o.kind == k {
			return o.words[0]
		}
	}
	return string(k)
}
