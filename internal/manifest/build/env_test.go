package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/pod"
)

// resolved returns the environment of a plan's first container, which has no references.
func resolved(t *testing.T, plan *pod.Plan) []string {
	t.Helper()
	plan.ServiceLinks = false
	e, err := environ.Resolve(plan, &plan.Containers[0], environ.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if !e.Fixed {
		t.Error("it is not known beforehand")
	}
	return e.Env
}

const pathOfNone = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func TestEnv(t *testing.T) {
	image := pod.Image{Cmd: []string{"run"}, Env: []string{"PATH=/image", "IMAGE=i", "BOTH=image", "broken", "=x"}}
	for _, test := range []struct {
		name, env string
		image     pod.Image
		want      []string
	}{
		{"the image's alone", "", image, []string{"PATH=/image", "HOSTNAME=p", "IMAGE=i", "BOTH=image"}},
		{"an image without a PATH", "", pod.Image{Cmd: []string{"run"}}, []string{"PATH=" + pathOfNone, "HOSTNAME=p"}},
		{"the manifest wins", "env: [{name: BOTH, value: pod}, {name: PATH, value: /pod}, {name: HOSTNAME, value: other}]", image,
			[]string{"PATH=/pod", "HOSTNAME=other", "IMAGE=i", "BOTH=pod"}},
		{"values see those above them, and nothing of the image", "env: [{name: A, value: $(B)}, {name: B, value: b}, {name: C, value: $(B)-$(IMAGE)-$(HOSTNAME)-$$(B)}]", image,
			[]string{"PATH=/image", "HOSTNAME=p", "IMAGE=i", "BOTH=image", "A=$(B)", "B=b", "C=b-$(IMAGE)-$(HOSTNAME)-$(B)"}},
		{"the last of one name wins, and sees the one before", "env: [{name: A, value: '1'}, {name: B, value: b}, {name: A, value: $(A)2}]", pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + pathOfNone, "HOSTNAME=p", "A=12", "B=b"}},
		{"an empty value is one", "env: [{name: A}]", pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + pathOfNone, "HOSTNAME=p", "A="}},
		{"newlines stay inside", `env: [{name: HOME, value: "/\nroot::0:0::/:/bin/sh"}]`, pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + pathOfNone, "HOSTNAME=p", "HOME=/\nroot::0:0::/:/bin/sh"}},
	} {
		if diff := cmp.Diff(test.want, resolved(t, mustBuild(t, podYAML(one(test.env)), test.image))); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestFieldRef(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns, uid: not-this, labels: {a/b: label}, annotations: {c: "an\nnotation"}}
spec:
  containers:
  - name: c
    image: i
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
    - {name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a/b']"}}}
    - {name: NOLABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['none']"}}}
    - {name: ANNOTATION, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['c']"}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: ALL, value: $(NAME)/$(UID)}
`
	got := resolved(t, mustBuild(t, text, pod.Image{Cmd: []string{"run"}}))[2:]
	want := []string{"NAME=p", "NAMESPACE=ns", "UID=uid-1", "LABEL=label", "NOLABEL=", "ANNOTATION=an\nnotation", "NODE=node-1", "ACCOUNT=default", "ALL=p/uid-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
