package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	envutil "k8s.io/kubernetes/pkg/kubelet/util/env"
	"pgregory.net/rapid"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// TestServiceVariables: the variables of Services are the kubelet's.
func TestServiceVariables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, false}
		var theirs []*corev1.Service
		var ours []*pod.Object
		for i := range rapid.IntRange(0, 3).Draw(t, "services") {
			s := &corev1.Service{}
			s.Name = d.one("a", "my-db", "x1") + fmt.Sprint(i)
			s.Spec.ClusterIP = d.often("10.0.0.1", "", "None", "fd00::1")
			for j := range rapid.IntRange(1, 3).Draw(t, "ports") {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: d.one("", "web", "a-b") + fmt.Sprint(j), Port: int32(d.number(1, 80, 65535)), Protocol: corev1.Protocol(d.one("TCP", "UDP"))})
			}
			if d.maybe() {
				s.Spec.Ports[0].Name = ""
			}
			theirs = append(theirs, s)
			made, err := manifest.NewObject("Service", s.DeepCopy())
			if err != nil {
				return // two ports are the same
			}
			ours = append(ours, made.Stored)
		}
		want := map[string]string{}
		for _, v := range envvars.FromServices(theirs) {
			want[v.Name] = v.Value
		}
		if diff := cmp.Diff(want, environ.Services(ours)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestEnvFiles: a file of variables has the same meaning as for the kubelet.
func TestEnvFiles(t *testing.T) {
	part := rapid.SampledFrom([]string{"A", "B", "=", "'", "'x'", "\n", " ", "\t", "#", "A='1'\n", "B='2\n3' # c\n", "A = '4'\n", "C= 'x'\n", "x"})
	file := filepath.Join(t.TempDir(), "env")
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for range rapid.IntRange(0, 12).Draw(t, "parts") {
			text += part.Draw(t, "part")
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"A", "B", "C"} {
			want, werr := envutil.ParseEnv(file, key)
			got, err := environ.ParseFile([]byte(text), key)
			if got != want || fmt.Sprint(err) != fmt.Sprint(werr) {
				t.Fatalf("%q: %s is %q, %v; the kubelet says %q, %v", text, key, got, err, want, werr)
			}
		}
	})
}

// TestResourceReferences: a variable's value of a limit or request is the kubelet's, if the pod's limits
// follow its rule.
func TestResourceReferences(t *testing.T) {
	machine := corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse("3"), corev1.ResourceMemory: apiresource.MustParse("7Gi"), corev1.ResourceEphemeralStorage: apiresource.MustParse("100G"),
	}
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, false}
		p := &corev1.Pod{}
		p.APIVersion, p.Kind, p.Name = "v1", "Pod", "p"
		p.Annotations = map[string]string{podutil.AnnotationPodLimits: "kubelet"}
		for _, name := range []string{"a", "b"} {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "i", Resources: d.resources()})
		}
		ref := &corev1.ResourceFieldSelector{Resource: d.resourceName(), ContainerName: d.one("", "a", "b"), Divisor: apiresource.MustParse(d.one("0", "1", "1m", "1Mi", "1k", "1Gi"))}
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: ref}}}
		plan := planFor(p, manifest.BuildOptions{UID: "u", Allocatable: machine})
		if plan == nil {
			return
		}
		tried++
		p = serverDefaults(t, p)
		for i := range p.Spec.Containers {
			resource.MergeContainerResourceLimits(&p.Spec.Containers[i], machine)
		}
		name := ref.ContainerName
		if name == "" {
			name = "a"
		}
		want, err := resource.ExtractResourceValueByContainerName(ref, p, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := *plan.Containers[0].Vars[0].From.Text; got != want {
			t.Fatalf("%+v is %s, the kubelet says %s", ref, got, want)
		}
	})
	if tried == 0 {
		t.Error("no pod was right")
	}
}
