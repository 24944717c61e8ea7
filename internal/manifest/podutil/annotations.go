package podutil

// AnnotationNetwork selects how the pod reaches the network: one of pod.NetworkModes.
const AnnotationNetwork = "podrun.dev/network"

// AnnotationHostLoopback, if "true", lets the pod reach servers on the host's loopback, by the name
// host.podrun.internal.
const AnnotationHostLoopback = "podrun.dev/host-loopback"

// AnnotationHostNames are further names of host.podrun.internal, in the pod's /etc/hosts.
const AnnotationHostNames = "podrun.dev/host-names"

// AnnotationNames are further names of a Service, which podrun's resolver answers in its namespace: they need not be
// names of Kubernetes.
const AnnotationNames = "podrun.dev/names"

// AnnotationDNSServers are the name servers that podrun's resolver queries for the pod instead of the host's.
const AnnotationDNSServers = "podrun.dev/dns-servers"

// AnnotationNetSysctls, if "true", permits every sysctl of the pod's own network namespace, as docker does.
const AnnotationNetSysctls = "podrun.dev/net-sysctls"

// AnnotationFreeHostPorts, if "true", gives every port of a container without a hostPort a free port of the host.
const AnnotationFreeHostPorts = "podrun.dev/free-host-ports"

// AnnotationLabels has labels of docker that Kubernetes has no key for, as a JSON object.
const AnnotationLabels = "podrun.dev/labels"

// AnnotationClusterServices, if "true", lets a pod of the user reach the Services of the Kubernetes cluster of which this
// host is a node.
const AnnotationClusterServices = "podrun.dev/cluster-services"

// AnnotationKeepFiles, if "true", lets a container that is restarted keep the files that it has written, as docker's
// restart does.
const AnnotationKeepFiles = "podrun.dev/keep-files"

// AnnotationRunAtBoot, if "true", lets a unit of systemd make a new pod after a restart of the machine, where it would keep
// one that has ended, or whose containers may not run twice. Pods of Quadlet's files have it.
const AnnotationRunAtBoot = "podrun.dev/run-at-boot"

// AnnotationPodLimits selects the rule for a pod's limits: see resources.Rule.
const AnnotationPodLimits = "podrun.dev/pod-limits"

// AnnotationComposeProject names the compose project of the pod: up and down -f of another project refuse to change it.
const AnnotationComposeProject = "podrun.dev/compose-project"

// AnnotationHookReason, if "true", passes the reason of the call to preStop hooks.
const AnnotationHookReason = "podrun.dev/hook-reason"

// AnnotationMemoryQoS, if "true", does what the kubelet does with its feature MemoryQoS, TieredReservation
// and the usual throttling factor: requested memory is protected (memory.min of a Guaranteed pod, memory.low
// of a Burstable one), and a container near its limit is slowed down (memory.high). Without it none of these
// is set, as by a kubelet with its defaults.
const AnnotationMemoryQoS = "podrun.dev/memory-qos"

// The disk limits of a container's logs, as the kubelet's containerLogMaxSize and containerLogMaxFiles: the
// size of a file, by default 10Mi, and the number of files, by default 5.
const (
	AnnotationLogMaxSize  = "podrun.dev/log-max-size"
	AnnotationLogMaxFiles = "podrun.dev/log-max-files"
)

// AnnotationAutoUpdate is podman's annotation of what an automatic update does with a pod's images. With
// "/CONTAINER" it is for one container.
const AnnotationAutoUpdate = "io.containers.autoupdate"

// The policies of automatic updates: the newest image of the registry, or the image that has the name on this
// machine.
const (
	AutoUpdateRegistry = "registry"
	AutoUpdateLocal    = "local"
)

// OpenKruise's names for the start order of app containers: the variable of its releases, the variable of its
// proposal, and the key of a label or an annotation.
const (
	LaunchPriorityEnv     = "KRUISE_CONTAINER_PRIORITY"
	LaunchPriorityEnvOld  = "KRUISE_CONTAINER_LAUNCH_PRIORITY"
	LaunchPriorityKey     = "apps.kruise.io/container-launch-priority"
	LaunchPriorityOrdered = "Ordered"
)
