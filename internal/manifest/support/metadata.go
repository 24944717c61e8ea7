package support

const noteGenerateName = "without a name: each podrun up makes a pod or object of another name; apply refuses it"

// metaRows are the fields outside spec.
var metaRows = []Field{
	{Path: "apiVersion", Support: Supported, Note: "v1"},
	{Path: "kind", Support: Supported, Note: "Pod, or List"},
	statusRow,

	{Path: "metadata{,.name}", Support: Supported},
	{Path: "metadata.namespace", Support: Supported, Note: "default: default; pods in different namespaces may have the same name"},
	{Path: "metadata.{labels,annotations}", Support: Supported},
	{Path: "metadata.annotations[podrun.dev/pod-limits]", Support: Supported, Note: "effective (default) or kubelet: the rule for the pod's limits"},
	{Path: "metadata.annotations[podrun.dev/hook-reason]", Support: Supported, Note: "true: preStop hooks get the reason: --reason=Delete, Health or Dependency, or ?reason="},
	{Path: "metadata.annotations[podrun.dev/memory-qos]", Support: Supported, Note: "\"true\": the kubelet's MemoryQoS: requested memory is protected, use near the limit is slowed down"},
	{Path: "metadata.annotations[podrun.dev/keep-files]", Support: Supported, Note: "\"true\": a container that is restarted keeps the files that it has written, as docker's restart does"},
	{Path: "metadata.annotations[podrun.dev/sync]", Support: Supported, Note: "what podrun up --watch copies into the containers: a YAML list as compose's develop.watch, with the path of the host, target, and action sync, restart or sync+restart"},
	{Path: "metadata.annotations[podrun.dev/log-max-size]", Support: Supported, Note: "at which size a log is rotated, as the kubelet's containerLogMaxSize (default 10Mi)"},
	{Path: "metadata.annotations[podrun.dev/log-max-files]", Support: Supported, Note: "how many files the log of a container has, as the kubelet's containerLogMaxFiles (default 5)"},
	{Path: "metadata.annotations[podrun.dev/host-loopback]", Support: Supported, Note: "\"true\": servers on the host's loopback are reachable as host.podrun.internal"},
	{Path: "metadata.annotations[podrun.dev/cluster-services]", Support: Supported, Note: "\"true\": on a node of a cluster the pod reaches the cluster's Services, which otherwise only the cluster's pods do"},
	{Path: "metadata.annotations[podrun.dev/network]", Support: Supported, Note: "auto (default), masquerade (root), tproxy, netstack, host or none: the network mode"},
	{Path: "metadata.annotations[io.containers.autoupdate{,/*}]", Support: Supported, Note: "podman's registry or local, for all containers or one: podrun update --auto updates the pod"},
	{Path: "metadata.annotations[podrun.dev/start-after]", Support: Supported, Note: "db=Ready,migration=Succeeded,cache=Running,queue=Healthy:30s: podrun up, apply and units start the pod when these pods of its namespace are in these states. Healthy is Ready, but a container that ends, or whose readiness probe fails (after the 30 s), ends the wait"},
	{Path: "metadata.annotations[podrun.dev/compose-project]", Support: Supported, Note: "podrun convert sets it: up and down -f of another compose project refuse the pod"},
	{Path: "metadata.annotations[podrun.dev/*]", Support: Refused, Note: "unknown to this version of podrun"},
	{Path: "metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]", Support: Supported, Note: "the old form of securityContext.appArmorProfile"},
	{Path: "metadata.annotations[cdi.k8s.io/*]", Support: Supported, Note: "devices for every container of the pod, by their CDI names: vendor.com/class=name, …"},
	{Path: "metadata.annotations[seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]", Support: Refused, Note: "use securityContext.seccompProfile"},
	{Path: "metadata.annotations[apps.kruise.io/container-launch-priority]", Support: Supported, Note: "Ordered: app containers start one after the other, each when those before it are ready"},
	{Path: "metadata.labels[apps.kruise.io/container-launch-priority]", Support: Supported, Note: "as the annotation"},
	{Path: "metadata.generateName", Support: Supported, Note: noteGenerateName},
	{Path: "metadata.uid", Support: Accepted, Note: "podrun gives every object its own"},
	{Path: "metadata.creationTimestamp", Support: Accepted, Note: "podrun sets it"},
	{Path: "metadata.generation", Support: Supported, Note: "default: 1, and one more with each change of spec; status.observedGeneration is the same"},
	{Path: "metadata.{resourceVersion,selfLink,managedFields}", Support: Accepted, Note: "bookkeeping of an API server"},
	{Path: "metadata.ownerReferences", Support: Accepted, Note: "podrun sets it in pods that it creates for another object"},
	{Path: "metadata.finalizers", Support: Accepted, Note: "there are no controllers that would remove them"},
	{Path: "metadata.{deletionTimestamp,deletionGracePeriodSeconds}", Support: Accepted, Note: "podrun down sets it"},
}
