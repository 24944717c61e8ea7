package manifest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
)

func TestPolicies(t *testing.T) {
	plain := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
	host := plain.DeepCopy()
	host.Spec.HostPID = true
	host.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	annotated := func(name, value string) *corev1.Pod {
		p := plain.DeepCopy()
		p.Annotations = map[string]string{name: value}
		return p
	}
	const prefix = "pod-security.kubernetes.io/"
	for _, tt := range []struct {
		labels          map[string]string
		pod             *corev1.Pod
		forbidden, warn string // parts of the message; "" if there is none
	}{
		{nil, host, "", ""},
		{map[string]string{prefix + "enforce": "privileged"}, host, "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, plain, "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, host, `violates PodSecurity "baseline:latest": host namespaces (hostPID=true), hostPath volumes (volume "root")`, ""},
		{map[string]string{prefix + "enforce": "restricted"}, plain, `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)`, ""},
		{map[string]string{prefix + "enforce": "restricted", prefix + "enforce-version": "v1.30"}, plain, `violates PodSecurity "restricted:v1.30"`, ""},
		{map[string]string{prefix + "enforce": "baseline", prefix + "warn": "restricted"}, plain, "", `violates PodSecurity "restricted:latest"`},
		{map[string]string{prefix + "warn": "baseline"}, host, "", "hostPID=true"},
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationNetwork, "host"), "host namespaces (hostNetwork=true)", ""},
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationNetwork, "none"), "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationHostLoopback, "true"), "the host's loopback (annotation podrun.dev/host-loopback)", ""},
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationHostLoopback, "false"), "", ""},
		{map[string]string{prefix + "enforce": "privileged"}, annotated(podutil.AnnotationNetwork, "host"), "", ""},
	} {
		p, err := validation.PodSecurityFromLabels(tt.labels)
		if err != nil {
			t.Fatalf("%v: %v", tt.labels, err)
		}
		forbidden, warn := p.Evaluate(tt.pod)
		if !strings.Contains(forbidden, tt.forbidden) || (forbidden == "") != (tt.forbidden == "") ||
			!strings.Contains(warn, tt.warn) || (warn == "") != (tt.warn == "") {
			t.Errorf("%v: %q, %q, want %q, %q", tt.labels, forbidden, warn, tt.forbidden, tt.warn)
		}
	}
	if _, err := validation.PodSecurityFromLabels(map[string]string{prefix + "enforce": "strict"}); err == nil {
		t.Error("an unknown level is taken")
	}
	if _, err := validation.PodSecurityLevel("strict"); err == nil {
		t.Error("an unknown level is taken")
	}
	if forbidden, warn := (validation.PodSecurity{}).Evaluate(host); forbidden != "" || warn != "" {
		t.Errorf("no policy says %q, %q", forbidden, warn)
	}
}
