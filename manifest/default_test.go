package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/podrun/podrun/internal/golden"
)

// TestDefaults reviews a whole Pod as it is stored and printed.
func TestDefaults(t *testing.T) {
	p := decodePod(t, `apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  serviceAccount: robot
  initContainers:
  - {name: i, image: "registry:5000/a/b"}
  containers:
  - name: c
    image: busybox:1.36
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
    resources: {limits: {cpu: 100u, memory: 1Gi}, requests: {memory: 1Mi}}
  resources: {limits: {cpu: 2}}
  volumes: [{name: v}]
`)
	Default(p)
	once := p.DeepCopy()
	Default(p)
	if diff := cmp.Diff(once, p); diff != "" {
		t.Errorf("twice is not as good as once:\n%s", diff)
	}
	text, err := kyaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/defaults.yaml", string(text))
}

func TestPullPolicyByTag(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"busybox":                       corev1.PullAlways,
		"busybox:latest":                corev1.PullAlways,
		"busybox:1.36":                  corev1.PullIfNotPresent,
		"registry:5000/a":               corev1.PullAlways,
		"registry:5000/a:1":             corev1.PullIfNotPresent,
		"a@sha256:0123":                 corev1.PullIfNotPresent,
		"a:1@sha256:0123":               corev1.PullIfNotPresent,
		"a:latest@sha256:0123":          corev1.PullAlways,
		"registry:5000/a/b@sha256:0123": corev1.PullIfNotPresent,
	} {
		o := load(t, podYAML("{containers: [{name: c, image: '"+image+"'}]}"))
		if got := o.Pod.Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestImages(t *testing.T) {
	o := load(t, podYAML("{initContainers: [{name: i, image: 'a:1'}], containers: [{name: c, image: b}, {name: d, image: c, imagePullPolicy: Never}]}"))
	want := []ImageUse{{"i", "", "a:1", "IfNotPresent"}, {"c", "", "b", "Always"}, {"d", "", "c", "Never"}}
	if diff := cmp.Diff(want, Images(o.Pod)); diff != "" {
		t.Error(diff)
	}
}
