package conversion

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestServiceFamilies(t *testing.T) {
	single, prefer, require := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	app := map[string]string{"app": "web"}
	for _, c := range []struct {
		spec corev1.ServiceSpec
		want string
	}{
		{corev1.ServiceSpec{Selector: app}, "IPv4"},
		{corev1.ServiceSpec{IPFamilyPolicy: &single}, "IPv4"},
		{corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}, "IPv4"},
		{corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, IPFamilyPolicy: &single}, "IPv6"},
		{corev1.ServiceSpec{IPFamilyPolicy: &prefer}, "IPv4 IPv6"},
		{corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, IPFamilyPolicy: &require}, "IPv6 IPv4"},
		{corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}}, "IPv6 IPv4"},
		{corev1.ServiceSpec{ClusterIP: "fd88::8005", ClusterIPs: []string{"fd88::8005"}}, "IPv6"},
		{corev1.ServiceSpec{ClusterIP: "10.88.128.5", ClusterIPs: []string{"10.88.128.5", "fd88::8005"}}, "IPv4 IPv6"},
		{corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}, Selector: app}, "IPv4"},
		{corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}, "IPv4 IPv6"},
		{corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}, ""},
	} {
		if got := strings.Join(serviceFamilies(&c.spec), " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.spec, got, c.want)
		}
	}
}
