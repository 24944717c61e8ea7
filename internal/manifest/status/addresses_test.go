package status_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/status"
	"github.com/podrun/podrun/internal/pod"
)

// TestRenderAddresses: the addresses are in Kubernetes' fields.
func TestRenderAddresses(t *testing.T) {
	st := status.Render(&corev1.Pod{}, &pod.Status{PodIPs: []string{"10.88.0.2", "fd88::2"}, HostIPs: []string{"192.0.2.7"}}).Status
	if st.PodIP != "10.88.0.2" || len(st.PodIPs) != 2 || st.PodIPs[1].IP != "fd88::2" || st.HostIP != "192.0.2.7" || len(st.HostIPs) != 1 {
		t.Errorf("status %+v", st)
	}
}
