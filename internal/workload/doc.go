// Package workload implements the controllers of Deployment, ReplicaSet, StatefulSet, DaemonSet,
// Job and CronJob.
//
// One pure function, Decide, takes the desired state, the saved state and the existing pods, and
// returns the next step: which pods to make and to remove, the state to save, and the time of the
// next call at the latest. It follows Kubernetes' controllers
// (pkg/controller/{deployment,replicaset,statefulset,daemon,job,cronjob}) as far as they apply to
// one machine. The CLI carries the decisions out.
package workload
