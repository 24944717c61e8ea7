package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podrun/podrun/internal/cdi"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
)

// TestAssign checks which devices containers get: app containers the devices of init containers again, sidecars their
// own, and a resumed pod its previous ones.
func TestAssign(t *testing.T) {
	counted := func(name, limits string) corev1.Container {
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}
		for limit := range strings.FieldsSeq(limits) {
			key, n, _ := strings.Cut(limit, ":")
			c.Resources.Limits[corev1.ResourceName(key)] = resource.MustParse(n)
		}
		return c
	}
	sidecar := func(name, limits string) corev1.Container {
		c := counted(name, limits)
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		return c
	}
	for name, tc := range map[string]struct {
		inits, apps []corev1.Container
		before      map[string][]string
		held        []HeldDevice
		want        string // or the error
	}{
		"in order":           {apps: []corev1.Container{counted("a", "v.x/c:1"), counted("b", "v.x/c:2")}, want: "a=[v.x/c=0] b=[v.x/c=1 v.x/c=2]"},
		"init containers":    {inits: []corev1.Container{counted("i", "v.x/c:2"), counted("j", "v.x/c:3")}, apps: []corev1.Container{counted("a", "v.x/c:1"), counted("b", "v.x/c:1")}, want: "i=[v.x/c=0 v.x/c=1] j=[v.x/c=0 v.x/c=1 v.x/c=2] a=[v.x/c=0] b=[v.x/c=1]"},
		"sidecars":           {inits: []corev1.Container{counted("i", "v.x/c:1"), sidecar("s", "v.x/c:1")}, apps: []corev1.Container{counted("a", "v.x/c:1")}, want: "i=[v.x/c=0] s=[v.x/c=0] a=[v.x/c=1]"},
		"its own before":     {apps: []corev1.Container{counted("a", "v.x/c:1")}, before: map[string][]string{"a": {"v.x/c=2"}}, want: "a=[v.x/c=2]"},
		"lost meanwhile":     {apps: []corev1.Container{counted("a", "v.x/c:1")}, before: map[string][]string{"a": {"v.x/c=2"}}, held: []HeldDevice{{"v.x/c=2", "p"}}, want: "a=[v.x/c=0]"},
		"named by another":   {apps: []corev1.Container{counted("a", "v.x/c:1"), counted("b", "v.x/c=0:1")}, want: "a=[v.x/c=1] b=[]"},
		"named and counted":  {apps: []corev1.Container{counted("a", "v.x/c=1:1 v.x/c:1")}, want: "a=[v.x/c=1 v.x/c=0]"},
		"all is shared":      {apps: []corev1.Container{counted("a", "v.x/c:3")}, held: []HeldDevice{{"v.x/c=all", "p"}}, want: "a=[v.x/c=0 v.x/c=1 v.x/c=2]"},
		"another name of it": {apps: []corev1.Container{counted("a", "v.x/c:3")}, held: []HeldDevice{{"v.x/c=U1", "p"}}, want: "a: it requests v.x/c: 3, and 2 of 3 are free; in use: v.x/c=1 by pod p"},
		"too many":           {apps: []corev1.Container{counted("a", "v.x/c:4")}, want: "a: it requests v.x/c: 4, and there are 3"},
		"in its own pod":     {apps: []corev1.Container{counted("a", "v.x/c:2"), counted("b", "v.x/c:2")}, want: "b: it requests v.x/c: 2, and 1 of 3 are free; in use: v.x/c=0 by container a of pod p, v.x/c=1 by container a of pod p"},
		"unknown kind":       {apps: []corev1.Container{counted("a", "v.x/d:1")}, want: "a: no file describes devices of the kind v.x/d"},
		"none":               {apps: []corev1.Container{counted("a", "v.x/d:0")}, want: "a=[]"},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := cdi.Kinds([]string{writeSpec(t)})
			if err != nil {
				t.Fatal(err)
			}
			p := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.inits, Containers: tc.apps}}
			p.Name = "p"
			a := newAssigner(kinds, p, tc.held)
			var got []string
			for _, list := range [][]corev1.Container{tc.inits, tc.apps} {
				for i := range list {
					c := &pod.Container{Name: list[i].Name, Devices: tc.before[list[i].Name]}
					if len(podutil.DeviceCounts(&list[i])) == 0 {
						got = append(got, c.Name+"=[]")
						continue
					}
					if err := a.container(&list[i], c); err != nil {
						got = []string{c.Name + ": " + err.Error()}
						break
					}
					got = append(got, c.Name+"=["+strings.Join(c.Devices, " ")+"]")
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("\n got %s\nwant %s", text, tc.want)
			}
		})
	}
}

// writeSpec describes the devices 0, 1 and 2; U1 is another name of 1.
func writeSpec(t *testing.T) string {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("cdiVersion: \"0.6.0\"\nkind: v.x/c\ndevices:\n")
	for name, node := range map[string]string{"0": "zero", "1": "null", "U1": "null", "2": "full", "all": "tty"} {
		b.WriteString("- {name: \"" + name + "\", containerEdits: {deviceNodes: [{path: /dev/" + node + "}]}}\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestVisibleDevices checks which devices NVIDIA_VISIBLE_DEVICES requests.
func TestVisibleDevices(t *testing.T) {
	text := "1, GPU-2"
	for want, c := range map[string]pod.Container{
		"":                                      {Env: []string{"NVIDIA_VISIBLE_DEVICES=void"}},
		"nvidia.com/gpu=all":                    {Env: []string{"A=b", "NVIDIA_VISIBLE_DEVICES=all"}},
		"nvidia.com/gpu=1 nvidia.com/gpu=GPU-2": {Env: []string{"NVIDIA_VISIBLE_DEVICES=all"}, Vars: []pod.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", From: &pod.EnvRef{Text: &text}}}},
		"nvidia.com/mig=0:1":                    {Vars: []pod.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "nvidia.com/mig=0:1"}}},
	} {
		names, err := visibleDevices(&c)
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("got %s, want %s, error %v", got, want, err)
		}
	}
	for _, from := range []*pod.EnvRef{{Key: &pod.KeyRef{Kind: pod.KindConfigMap, Name: "m", Key: "k"}}, {File: &pod.FileRef{Volume: "v"}}} {
		c := pod.Container{Env: []string{"NVIDIA_VISIBLE_DEVICES=all"}, Vars: []pod.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", From: from}}}
		if names, err := visibleDevices(&c); err == nil {
			t.Errorf("%+v: got %s, want an error", from, names)
		}
	}
}
