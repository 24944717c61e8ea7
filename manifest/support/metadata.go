package support

// metaRows are the fields outside spec.
var metaRows = []Field{
	{Path: "apiVersion", Support: Done, Note: "v1"},
	{Path: "kind", Support: Done, Note: "Pod, or List"},
	statusRow,

	{Path: "metadata{,.name}", Support: Done},
	{Path: "metadata.namespace", Support: Done, Note: "default: default; pods of one name may live in several namespaces"},
	{Path: "metadata.{labels,annotations}", Support: Done},
	{Path: "metadata.annotations[podrun.dev/pod-limits]", Support: Done, Note: "effective (default) or kubelet: the rule for the pod's limits"},
	{Path: "metadata.annotations[podrun.dev/hook-reason]", Support: Done, Note: "true: preStop hooks get the reason: --reason=Delete, Health or Dependency, or ?reason="},
	{Path: "metadata.annotations[podrun.dev/memory-qos]", Support: Done, Note: "\"true\": the kubelet's MemoryQoS: requested memory is protected, use near the limit is slowed down"},
	{Path: "metadata.annotations[podrun.dev/log-max-size]", Support: Done, Note: "at which size a log is rotated, as the kubelet's containerLogMaxSize (default 10Mi)"},
	{Path: "metadata.annotations[podrun.dev/log-max-files]", Support: Done, Note: "how many files the log of a container has, as the kubelet's containerLogMaxFiles (default 5)"},
	{Path: "metadata.annotations[podrun.dev/host-loopback]", Support: Done, Note: "\"true\": what listens on the host's loopback is reached by the name host.podrun.internal"},
	{Path: "metadata.annotations[podrun.dev/network]", Support: Done, Note: "auto (default), masquerade (root), tproxy, netstack, host or none: how the pod reaches the world"},
	{Path: "metadata.annotations[podrun.dev/*]", Support: Refused, Note: "unknown to this version of podrun"},
	{Path: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]", Support: Done, Note: "the old form of securityContext.appArmorProfile"},
	{Path: "metadata.annotations[cdi.k8s.io/*]", Support: Done, Note: "devices for every container of the pod, by their CDI names: vendor.com/class=name, …"},
	{Path: "metadata.annotations[seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[apps.kruise.io/container-launch-priority]", Support: Done, Note: "Ordered: app containers start one after the other, each when those before it are ready"},
	{Path: "metadata.labels[apps.kruise.io/container-launch-priority]", Support: Done, Note: "as the annotation"},
	{Path: "metadata.generateName", Support: Refused, Note: "give the pod a name"},
	{Path: "metadata.uid", Support: Accepted, Note: "podrun gives every pod its own"},
	{Path: "metadata.creationTimestamp", Support: Accepted, Note: "podrun sets it"},
	{Path: "metadata.generation", Support: Done, Note: "default: 1, and one more with each change of spec; status.observedGeneration is the same"},
	{Path: "metadata.{resourceVersion,selfLink,managedFields}", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.ownerReferences", Support: Accepted, Note: "podrun sets it in pods that it makes for another object"},
	{Path: "metadata.finalizers", Support: Accepted, Note: "there are no controllers that would remove them"},
	{Path: "metadata.{deletionTimestamp,deletionGracePeriodSeconds}", Support: Accepted, Note: "podrun down sets it"},
}
