package manifest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/pod"
)

func TestNetworkAnnotations(t *testing.T) {
	for value, want := range map[string]string{
		`podrun.dev/host-loopback: "true"`:    "",
		`podrun.dev/host-loopback: "false"`:   "",
		`podrun.dev/host-loopback: "yes"`:     `metadata.annotations[podrun.dev/host-loopback]: Unsupported value: "yes": supported values: "true", "false"`,
		`podrun.dev/cluster-services: "true"`: "",
		`podrun.dev/cluster-services: "yes"`:  `metadata.annotations[podrun.dev/cluster-services]: Unsupported value: "yes": supported values: "true", "false"`,
		`podrun.dev/host-loopback: ""`:        `metadata.annotations[podrun.dev/host-loopback]: Required value`,
	} {
		_, err := Load("f", onePod(value, app+tcpPort+"]}]"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", value, err, want)
		}
	}
}

// TestRenderAddresses: the addresses are in Kubernetes' fields.
func TestRenderAddresses(t *testing.T) {
	st := Render(&corev1.Pod{}, &pod.Status{PodIPs: []string{"10.88.0.2", "fd88::2"}, HostIPs: []string{"192.0.2.7"}}).Status
	if st.PodIP != "10.88.0.2" || len(st.PodIPs) != 2 || st.PodIPs[1].IP != "fd88::2" || st.HostIP != "192.0.2.7" || len(st.HostIPs) != 1 {
		t.Errorf("status %+v", st)
	}
}
