package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Local is a pod on this host.
type Local struct {
	UID   types.UID
	Alive bool        // its processes run, or its images are pulled
	Ended bool        // it has ended for good; a pod whose processes are lost may have not
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
	wait        action = iota // until something changes
	waitForEnd                // until the other pod of its name has been removed
	apply                     // start the pod, or change the running one to its manifest
	cancelApply               // and wait
	stop                      // end its processes, with gracePeriod
	remove                    // remove it from this host
	finish                    // delete it from the API server: this host has no part of it
	forget                    // nothing is left of it
)

// decide returns the next step for a pod (kubelet: pkg/kubelet/pod_workers.go, syncPod, SyncTerminatingPod and
// SyncTerminatedPod).
func decide(v *view) action {
	own := v.local != nil && v.local.UID == v.pod.UID
	if v.orphaned || v.pod.DeletionTimestamp != nil {
		return decideEnd(v, own)
	}
	ended := hasEnded(&v.pod.Status)
	switch {
	case ended && v.applying:
		return cancelApply
	case ended && own && v.local.Alive && v.stopping == nil:
		return stop
	case v.applying, v.rejected, ended, own && v.local.Ended:
		return wait
	case v.local != nil && !own:
		return waitForEnd
	case !own, !v.local.Alive, !v.applied:
		return apply
	}
	return wait
}

// decideEnd returns the next step for a pod that is to end. own reports whether it is on this host.
func decideEnd(v *view, own bool) action {
	switch {
	case v.applying:
		return cancelApply
	case own && v.local.Alive && (v.stopping == nil || gracePeriod(v.pod) < *v.stopping):
		return stop
	case own && v.local.Alive:
		return wait
	case own && (v.orphaned || v.reported):
		return remove
	case own:
		return wait
	case v.orphaned:
		return forget
	}
	return finish
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
