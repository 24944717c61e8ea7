package podutil

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHostPorts: with the annotation a port without a hostPort keeps the one that it has, or gets a free one.
func TestHostPorts(t *testing.T) {
	made := func(annotation string, ports ...int32) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationFreeHostPorts: annotation}}}
		c := corev1.Container{Name: "app"}
		for i, n := range ports {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: int32(80 + i), Protocol: corev1.ProtocolTCP, HostPort: n})
		}
		p.Spec.Containers = []corev1.Container{c}
		return p
	}
	for annotation, want := range map[string][]int32{"true": {1000, 7, 9}, "false": {0, 7, 0}} {
		p := made(annotation, 0, 7, 0)
		KeepHostPorts(made("true", 1000, 1001), p)
		err := FillHostPorts(p, func(*corev1.Container, *corev1.ContainerPort) (int32, error) { return 9, nil })
		for i, n := range want {
			if got := p.Spec.Containers[0].Ports[i].HostPort; got != n || err != nil {
				t.Errorf("%s: port %d is %d, %v, want %d", annotation, i, got, err, n)
			}
		}
	}
}
