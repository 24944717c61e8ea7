package manifest

// metaRows are the fields outside spec.
var metaRows = []Field{
	{Path: "apiVersion", Support: Done, Note: "v1"},
	{Path: "kind", Support: Done, Note: "Pod, or List"},
	{Path: "status", Support: Accepted, Note: "podrun writes its own; what is given is dropped"},

	{Path: "metadata", Support: Done},
	{Path: "metadata.name", Support: Done},
	{Path: "metadata.namespace", Support: Done, Note: "default: default; pods of one name may live in several namespaces"},
	{Path: "metadata.labels", Support: Done},
	{Path: "metadata.annotations", Support: Done},
	{Path: "metadata.annotations[podrun.dev/pod-limits]", Support: Done, Note: "effective (default) or kubelet: the rule for the pod's limits"},
	{Path: "metadata.annotations[podrun.dev/hook-reason]", Support: Done, Note: "true: preStop hooks are told why: --reason=Delete, Health or Dependency, or ?reason="},
	{Path: "metadata.annotations[podrun.dev/memory-qos]", Support: Done, Note: "\"true\": the kubelet's MemoryQoS: requested memory is protected, use near the limit is slowed down"},
	{Path: "metadata.annotations[podrun.dev/*]", Support: Refused, Note: "not an annotation of this podrun"},
	{Path: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]", Support: Refused, Note: "AppArmor profiles"},
	{Path: "metadata.annotations[seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[apps.kruise.io/container-launch-priority]", Support: Done, Note: "Ordered: app containers start one after the other, each when those before it are ready"},
	{Path: "metadata.labels[apps.kruise.io/container-launch-priority]", Support: Done, Note: "as the annotation"},
	{Path: "metadata.generateName", Support: Refused, Note: "give the pod a name"},
	{Path: "metadata.uid", Support: Accepted, Note: "podrun gives every pod its own"},
	{Path: "metadata.creationTimestamp", Support: Accepted, Note: "podrun sets it"},
	{Path: "metadata.generation", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.resourceVersion", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.selfLink", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.managedFields", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.ownerReferences", Support: Accepted, Note: "there are no controllers that could own a pod"},
	{Path: "metadata.finalizers", Support: Accepted, Note: "there are no controllers that would remove them"},
	{Path: "metadata.deletionTimestamp", Support: Accepted, Note: "what is being deleted is decided by podrun down"},
	{Path: "metadata.deletionGracePeriodSeconds", Support: Accepted, Note: "what is being deleted is decided by podrun down"},
}
