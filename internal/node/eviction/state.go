package eviction

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// TransitionPeriod is how long a condition stays after its last threshold was met (kubelet:
// evictionPressureTransitionPeriod).
const TransitionPeriod = 5 * time.Minute

// Observation is the state of what a signal is about: bytes, inodes or processes.
type Observation struct{ Available, Capacity int64 }

// Observations has the signals that can be known.
type Observations map[Signal]Observation

// Met returns the thresholds that are met, in the order in which they are handled: memory first (kubelet:
// pkg/kubelet/eviction/helpers.go, thresholdsMet and byEvictionPriority).
func Met(thresholds []Threshold, o Observations) (met []Threshold) {
	for _, t := range thresholds {
		seen, known := o[t.Signal]
		if q := t.quantity(seen.Capacity); known && q.CmpInt64(seen.Available) > 0 {
			met = append(met, t)
		}
	}
	slices.SortStableFunc(met, func(a, b Threshold) int {
		return compareBools(a.Signal == MemoryAvailable, b.Signal == MemoryAvailable)
	})
	return met
}

// compareBools places true before false.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// State has the conditions of a node. The zero State has none.
type State struct {
	last       map[corev1.NodeConditionType]time.Time // when a threshold was last met
	conditions []corev1.NodeConditionType
}

// Conditions returns the conditions that are True, sorted.
func (s *State) Conditions() []corev1.NodeConditionType { return s.conditions }

// Update returns the state at the time now, when the thresholds met are met.
func (s State) Update(now time.Time, met []Threshold) State {
	next := State{last: map[corev1.NodeConditionType]time.Time{}}
	for condition, last := range s.last {
		if now.Sub(last) < TransitionPeriod {
			next.last[condition] = last
		}
	}
	for _, t := range met {
		next.last[signals[t.Signal].condition] = now
	}
	next.conditions = slices.Sorted(maps.Keys(next.last))
	return next
}

// Reason is the reason of evicted and of rejected pods.
const Reason = "Evicted"

// Refusal returns why a node with these conditions does not admit a pod, "" if it does (kubelet:
// pkg/kubelet/eviction/eviction_manager.go, Admit). Pressure of memory alone is no reason against pods that request
// resources or that tolerate it.
func Refusal(p *corev1.Pod, qos corev1.PodQOSClass, conditions []corev1.NodeConditionType) string {
	if len(conditions) == 0 || isCritical(p) {
		return ""
	}
	if len(conditions) == 1 && conditions[0] == corev1.NodeMemoryPressure {
		taint := &corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
		if qos != corev1.PodQOSBestEffort || scheduling.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, taint, false) {
			return ""
		}
	}
	return fmt.Sprintf("The node had condition: %v. ", conditions)
}

// systemCriticalPriority is the lowest priority of pods that are never evicted (kubelet: pkg/apis/scheduling,
// SystemCriticalPriority).
const systemCriticalPriority = 2_000_000_000

// isCritical reports whether a pod is never evicted, and always admitted: it has a system priority or is the mirror of a
// static pod (kubelet: pkg/kubelet/types/pod_update.go, isCriticalPod).
func isCritical(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || scheduling.PodPriority(p) >= systemCriticalPriority
}

// request returns how much of a resource a pod requests.
func request(p *corev1.Pod, name corev1.ResourceName) int64 {
	q := resource.PodRequests(p, resource.PodResourcesOptions{})[name]
	return q.Value()
}
