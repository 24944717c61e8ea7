package manifest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Stamp gives a loaded Pod what an API server gives one that is created: its uid
// and its time. The command line calls it, and compares what it has stamped alike.
func Stamp(p *corev1.Pod, uid string, now time.Time) {
	p.UID = types.UID(uid)
	p.CreationTimestamp = metav1.NewTime(now)
	p.Generation = max(p.Generation, 1)
}

// NextGeneration is that of a Pod that is changed: the one that its manifest gives, if that
// is a later one; else a change of more than labels and annotations makes the next, as with
// an API server.
func NextGeneration(old, next *corev1.Pod, d *difference) int64 {
	generation := old.Generation
	if d.Resources || d.Lifetime || len(d.Images)+len(d.Ephemeral) > 0 {
		generation++
	}
	return max(generation, next.Generation)
}

// Unstamp takes away what Stamp gives.
func Unstamp(p *corev1.Pod) { p.UID, p.CreationTimestamp, p.Generation = "", metav1.Time{}, 0 }
