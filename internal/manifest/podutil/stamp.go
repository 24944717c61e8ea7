package podutil

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FillSystemFields sets the fields that an API server sets in a created Pod: uid and creation time. The CLI
// calls it, and compares Pods with the same values.
func FillSystemFields(p *corev1.Pod, uid string, now time.Time) {
	p.UID = types.UID(uid)
	p.CreationTimestamp = metav1.NewTime(now)
	p.Generation = max(p.Generation, 1)
}

// ClearSystemFields removes the fields that FillSystemFields sets.
func ClearSystemFields(p *corev1.Pod) {
	p.UID, p.CreationTimestamp, p.Generation = "", metav1.Time{}, 0
}
