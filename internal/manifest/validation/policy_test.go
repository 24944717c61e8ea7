package validation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/validation"
	"github.com/podrun/podrun/internal/pod"
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
	claiming := func(claim string) *corev1.Pod {
		p := plain.DeepCopy()
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	limited := func(name string) *corev1.Pod {
		p := plain.DeepCopy()
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}
		return p
	}
	nvidia := plain.DeepCopy()
	nvidia.Spec.RuntimeClassName = new("nvidia")
	probe := plain.DeepCopy()
	probe.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1"}}}
	volumeOf := func(claim string) *pod.Object {
		return map[string]*pod.Object{
			"host": {Name: "root", PersistentVolume: &pod.PersistentVolume{Source: "hostPath", Path: "/"}},
			"disk": {Name: "disk", PersistentVolume: &pod.PersistentVolume{Source: "local", Path: "/srv"}},
			"nfs":  {Name: "nfs", PersistentVolume: &pod.PersistentVolume{Source: "nfs"}},
		}[claim]
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
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationFreeHostPorts, "true"), "free ports of the host (annotation podrun.dev/free-host-ports)", ""},
		{map[string]string{prefix + "enforce": "baseline"}, annotated(podutil.AnnotationHostLoopback, "false"), "", ""},
		{map[string]string{prefix + "enforce": "privileged"}, annotated(podutil.AnnotationNetwork, "host"), "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, claiming("host"), `a directory of the host (volume "v": claim "host" is bound to PersistentVolume "root", hostPath)`, ""},
		{map[string]string{prefix + "enforce": "restricted"}, claiming("disk"), `claim "disk" is bound to PersistentVolume "disk", local`, ""},
		{map[string]string{prefix + "warn": "baseline"}, claiming("host"), "", "a directory of the host"},
		{map[string]string{prefix + "enforce": "baseline"}, claiming("nfs"), "", ""}, // podrun does not mount it
		{map[string]string{prefix + "enforce": "baseline"}, claiming("own"), "", ""},
		{map[string]string{prefix + "enforce": "privileged"}, claiming("host"), "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, annotated("cdi.k8s.io/devices", "vendor.com/class=name"), `devices of the host (container "c": vendor.com/class=name)`, ""},
		{map[string]string{prefix + "enforce": "baseline"}, limited("vendor.com/class=name"), "devices of the host", ""},
		{map[string]string{prefix + "enforce": "baseline"}, limited("vendor.com/class"), `devices of the host (container "c": vendor.com/class)`, ""},
		{map[string]string{prefix + "enforce": "baseline"}, limited("memory"), "", ""},
		{map[string]string{prefix + "enforce": "baseline"}, nvidia, "devices of the host (runtimeClassName nvidia)", ""},
		{map[string]string{prefix + "enforce": "baseline"}, probe, "probe or lifecycle host", ""},
	} {
		p, err := validation.PodSecurityFromLabels(tt.labels)
		if err != nil {
			t.Fatalf("%v: %v", tt.labels, err)
		}
		forbidden, warn := p.Evaluate(tt.pod, volumeOf)
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
	if forbidden, warn := (validation.PodSecurity{}).Evaluate(host, volumeOf); forbidden != "" || warn != "" {
		t.Errorf("no policy says %q, %q", forbidden, warn)
	}
}

// TestWeakerPolicies compares what a namespace enforces with what its manifest would make it enforce.
func TestWeakerPolicies(t *testing.T) {
	const prefix = "pod-security.kubernetes.io/"
	baseline := map[string]string{prefix + "enforce": "baseline", prefix + "enforce-version": "v1.30"}
	for _, tt := range []struct {
		next, enforced map[string]string
		weaker         bool
	}{
		{nil, nil, false},
		{nil, baseline, true},
		{map[string]string{prefix + "enforce": "privileged"}, baseline, true},
		{map[string]string{prefix + "warn": "restricted"}, baseline, true},
		{map[string]string{prefix + "enforce": "baseline", prefix + "enforce-version": "v1.29"}, baseline, true},
		{map[string]string{prefix + "enforce": "restricted", prefix + "enforce-version": "v1.29"}, baseline, true},
		{baseline, baseline, false},
		{map[string]string{prefix + "enforce": "baseline"}, baseline, false},
		{map[string]string{prefix + "enforce": "restricted"}, baseline, false},
		{baseline, nil, false},
		{map[string]string{prefix + "enforce-version": "v1.29"}, map[string]string{prefix + "enforce-version": "v1.30"}, false},
	} {
		next, err := validation.PodSecurityFromLabels(tt.next)
		if err != nil {
			t.Fatal(err)
		}
		enforced, err := validation.PodSecurityFromLabels(tt.enforced)
		if err != nil {
			t.Fatal(err)
		}
		if got := next.IsWeakerThan(enforced); got != tt.weaker {
			t.Errorf("%v is weaker than %v: %t", tt.next, tt.enforced, got)
		}
	}
}
