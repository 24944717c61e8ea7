package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Local is a pod on this host.
type Local struct {
	UID   types.UID
	Alive bool        // its processes run, or its images are pulled
	Ended bool        // it has ended for good; false for a pod whose processes are lost and that is to go on
	Pod   *corev1.Pod // with its status
}

// view is everything that the next step for a pod follows from.
type view struct {
	pod      *corev1.Pod // as the API server has it, or had it
	orphaned bool        // the API server does not have it any longer
	rejected bool        // the node has not admitted it
	local    *Local      // the pod of its name on this host; nil if there is none
	applied  bool        // the running pod has pod's manifest, or the engine has refused it
	applying bool        // it is being started or changed
	stopping *int64      // the grace period of the stop in progress, in seconds; nil if there is none
	reported bool        // the API server has its last status
}

// action is the next step for a pod.
type action int

const (
	actWait          action = iota // until something changes
	actWaitForEnd                  // until the other pod of its name has been removed
	actApply                       // start the pod, or change the running one to its manifest
	actCancelApply                 // and wait
	actStop                        // end its processes, with gracePeriod
	actRemove                      // remove it from this host
	actDeleteFromAPI               // nothing of it is left on this host
	actForget                      // nothing of it is left anywhere: end its worker
)

// decide returns the next step for a pod (kubelet: pkg/kubelet/pod_workers.go, syncPod, SyncTerminatingPod and
// SyncTerminatedPod).
func decide(v *view) action {
	isCurrent := v.local != nil && v.local.UID == v.pod.UID
	if v.orphaned || v.pod.DeletionTimestamp != nil {
		return decideEnd(v, isCurrent)
	}
	ended := hasEnded(&v.pod.Status)
	switch {
	case ended && v.applying:
		return actCancelApply
	case ended && isCurrent && v.local.Alive && v.stopping == nil:
		return actStop
	case v.applying, v.rejected, ended, isCurrent && v.local.Ended:
		return actWait
	case v.local != nil && !isCurrent:
		return actWaitForEnd
	case !isCurrent, !v.local.Alive, !v.applied:
		return actApply
	}
	return actWait
}

// decideEnd returns the next step for a pod that is to end. isCurrent reports whether it is on this host.
func decideEnd(v *view, isCurrent bool) action {
	switch {
	case v.applying:
		return actCancelApply
	case isCurrent && v.local.Alive && (v.stopping == nil || gracePeriod(v.pod) < *v.stopping):
		return actStop
	case isCurrent && v.local.Alive:
		return actWait
	case isCurrent && (v.orphaned || v.reported):
		return actRemove
	case isCurrent:
		return actWait
	case v.orphaned:
		return actForget
	case !v.reported:
		return actWait
	}
	return actDeleteFromAPI
}

// hasEnded reports whether a status is final.
func hasEnded(st *corev1.PodStatus) bool {
	return st.Phase == corev1.PodSucceeded || st.Phase == corev1.PodFailed
}

// gracePeriod returns how many seconds a pod has to stop.
func gracePeriod(p *corev1.Pod) int64 {
	switch {
	case p.DeletionGracePeriodSeconds != nil:
		return *p.DeletionGracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		return *p.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}
