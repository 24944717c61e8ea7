package pod

// Kinds of objects that make pods: they are kept as objects, and what is remembered of
// them beside.
const (
	KindDeployment  ObjectKind = "Deployment"
	KindReplicaSet  ObjectKind = "ReplicaSet"
	KindStatefulSet ObjectKind = "StatefulSet"
	KindDaemonSet   ObjectKind = "DaemonSet"
	KindJob         ObjectKind = "Job"
	KindCronJob     ObjectKind = "CronJob"
)

// Workloads are the kinds that make pods, in the order in which they are shown.
func Workloads() []ObjectKind {
	return []ObjectKind{KindDeployment, KindReplicaSet, KindStatefulSet, KindDaemonSet, KindJob, KindCronJob}
}
