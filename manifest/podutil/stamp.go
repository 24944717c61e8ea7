package podutil

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FillSystemFields gives a loaded Pod what an API server gives one that is created: its uid
// and its time. The command line calls it, and compares what it has stamped alike.
func FillSystemFields(p *corev1.Pod, uid string, now time.Time) {
	p.UID = types.UID(uid)
	p.CreationTimestamp = metav1.NewTime(now)
	p.Generation = max(p.Generation, 1)
}

// ClearSystemFields takes away what Stamp gives.
func ClearSystemFields(p *corev1.Pod) {
	p.UID, p.CreationTimestamp, p.Generation = "", metav1.Time{}, 0
}
