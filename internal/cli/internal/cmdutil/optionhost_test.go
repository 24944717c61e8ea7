package cmdutil

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestFreePort(t *testing.T) {
	for _, port := range []corev1.ContainerPort{{Protocol: corev1.ProtocolTCP}, {Protocol: corev1.ProtocolUDP, HostIP: "127.0.0.1"}} {
		if got, err := freePort(port); err != nil || got == 0 {
			t.Errorf("%+v: %d, %v", port, got, err)
		}
	}
}
