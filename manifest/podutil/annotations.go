package podutil

// AnnotationNetwork chooses how the pod reaches the world: one of pod.NetworkModes.
const AnnotationNetwork = "podrun.dev/network"

// AnnotationHostLoopback, if "true", lets the pod reach what listens on the host's loopback,
// by the name host.podrun.internal.
const AnnotationHostLoopback = "podrun.dev/host-loopback"

// AnnotationPodLimits chooses the rule for a pod's limits: see Rule.
const AnnotationPodLimits = "podrun.dev/pod-limits"

// AnnotationHookReason, if "true", has preStop hooks told why they are run.
const AnnotationHookReason = "podrun.dev/hook-reason"

// AnnotationMemoryQoS, if "true", turns on what the kubelet does with its feature
// MemoryQoS, TieredReservation and the usual throttling factor: requested memory is
// protected (memory.min of a Guaranteed pod, memory.low of a Burstable one), and a
// container that comes near its limit is slowed down (memory.high). Without it nothing
// of that is set, as by a kubelet with its defaults.
const AnnotationMemoryQoS = "podrun.dev/memory-qos"

// What a container's logs may take on disk, as the kubelet's containerLogMaxSize and
// containerLogMaxFiles: the size of a file, 10Mi without it, and how many there are,
// 5 without it.
const (
	AnnotationLogMaxSize  = "podrun.dev/log-max-size"
	AnnotationLogMaxFiles = "podrun.dev/log-max-files"
)

// OpenKruise's names for the order in which app containers are started: the variable
// of its releases, that of its proposal, and the key of a label or an annotation.
const (
	LaunchPriorityEnv     = "KRUISE_CONTAINER_PRIORITY"
	LaunchPriorityEnvOld  = "KRUISE_CONTAINER_LAUNCH_PRIORITY"
	LaunchPriorityKey     = "apps.kruise.io/container-launch-priority"
	LaunchPriorityOrdered = "Ordered"
)
