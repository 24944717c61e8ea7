// Package workload decides what becomes of the objects around pods: Deployment,
// ReplicaSet, StatefulSet, DaemonSet, Job and CronJob.
//
// One pure function, Decide, looks at what is wanted, what is remembered and which pods
// there are, and says what to do next: which pods to make and to remove, what to
// remember, and when to look again at the latest. It follows Kubernetes' controllers
// (pkg/controller/{deployment,replicaset,statefulset,daemon,job,cronjob}) as far as one
// machine has a use for them. The command line acts.
package workload
