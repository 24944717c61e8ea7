package defaulting_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/defaulting"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/manifest/workloads"
	"github.com/podrun/podrun/internal/workload"
)

// TestDefaults compares a whole Pod as it is stored and printed.
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
	defaulting.SetDefaults(p)
	once := p.DeepCopy()
	defaulting.SetDefaults(p)
	if diff := cmp.Diff(once, p); diff != "" {
		t.Errorf("twice is not as good as once:\n%s", diff)
	}
	golden.Check(t, "testdata/defaults.yaml", manifesttest.YAML(t, p))
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
		defaulting.SetDefaults(o.Pod)
		if got := o.Pod.Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// TestUnsetPullPolicySurvives follows an unset policy from the file to the store and back, and checks that
// the printed and the compared Pod have the default.
func TestUnsetPullPolicySurvives(t *testing.T) {
	o := load(t, podYAML("{containers: [{name: c, image: b}]}"))
	text, err := manifest.Marshal(o.Pod)
	if err != nil {
		t.Fatal(err)
	}
	again := load(t, string(text))
	if uses := podutil.Images(again.Pod); !uses[0].PolicyUnset {
		t.Errorf("of a stored pod: %+v", uses)
	}
	written := load(t, podYAML("{containers: [{name: c, image: b, imagePullPolicy: Always}]}"))
	if uses := podutil.Images(written.Pod); uses[0].PolicyUnset {
		t.Errorf("of a written policy: %+v", uses)
	}
	if d, err := manifest.Compare(written.Pod, o.Pod); err != nil || !d.Empty() {
		t.Errorf("an unset policy differs from its default: %+v, %v", d, err)
	}
	shown, err := printers.PrintPod(o.Pod, printers.YAML)
	if rendered := manifest.Render(o.Pod, nil); err != nil || !strings.Contains(string(shown), "imagePullPolicy: Always") || rendered.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("the default is not shown: %v\n%s", err, shown)
	}
}

// TestUnsetPullPolicyOfWorkloads does the same for pods that a workload makes from a template with the
// defaults: its revision does not depend on whether the policy was written.
func TestUnsetPullPolicyOfWorkloads(t *testing.T) {
	var revisions []string
	for policy, unset := range map[string]bool{"": true, ", imagePullPolicy: Always": false, ", imagePullPolicy: Never": false} {
		objects, err := manifest.Load("f", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: b"+policy+"}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		stored := objects[0].Stored
		spec, err := workloads.NewSpec(stored)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(policy, "Never") {
			revisions = append(revisions, spec.Revision)
		}
		made, err := workloads.NewPod(stored, workload.Make{Revision: spec.Revision, Index: -1}, spec.Template, "d-1")
		if err != nil {
			t.Fatal(err)
		}
		for what, o := range map[string]*manifest.Object{"pod": made, "sample": workloads.SamplePod(&objects[0])} {
			if uses := podutil.Images(o.Pod); uses[0].PolicyUnset != unset {
				t.Errorf("%q: the %s has %+v", policy, what, uses)
			}
		}
	}
	if revisions[0] != revisions[1] {
		t.Errorf("revisions differ: %v", revisions)
	}
}
