package pod

// Kinds of workloads: objects that make pods. They are stored as objects, and their state beside
// them.
const (
	KindDeployment  ObjectKind = "Deployment"
	KindReplicaSet  ObjectKind = "ReplicaSet"
	KindStatefulSet ObjectKind = "StatefulSet"
	KindDaemonSet   ObjectKind = "DaemonSet"
	KindJob         ObjectKind = "Job"
	KindCronJob     ObjectKind = "CronJob"
)

// Workloads returns the kinds that make pods, in the order of output.
func Workloads() []ObjectKind {
	return []ObjectKind{KindDeployment, KindReplicaSet, KindStatefulSet, KindDaemonSet, KindJob, KindCronJob}
}
