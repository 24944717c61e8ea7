package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/pod"
)

// TestExpand has the cases of Kubernetes' own expansion test.
func TestExpand(t *testing.T) {
	vars := map[string]string{"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}
	for in, want := range map[string]string{
		"":                           "",
		"plain":                      "plain",
		"$(VAR_A)":                   "A",
		"___$(VAR_B)___":             "___B___",
		"___$(VAR_C)":                "___C",
		"$(VAR_A)-$(VAR_B)":          "A-B",
		"$(VAR_A)$(VAR_B)":           "AB",
		"$(VAR_REF)":                 "$(VAR_A)",
		"%%$(VAR_REF)--$(VAR_REF)%%": "%%$(VAR_A)--$(VAR_A)%%",
		"foo$(VAR_EMPTY)bar":         "foobar",
		"foo$(VAR_Awhoops!":          "foo$(VAR_Awhoops!",
		"f00__(VAR_A)__":             "f00__(VAR_A)__",
		"$?_boo_$!":                  "$?_boo_$!",
		"$VAR_A":                     "$VAR_A",
		"$(VAR_DNE)":                 "$(VAR_DNE)",
		"$$$$$$(BIG_MONEY)":          "$$$(BIG_MONEY)",
		"$$$$$$(VAR_A)":              "$$$(VAR_A)",
		"$$$$$$$(VAR_A)":             "$$$A",
		"$VAR_A)":                    "$VAR_A)",
		"${VAR_A}":                   "${VAR_A}",
		"$(VAR_B)_______$(A":         "B_______$(A",
		"$(VAR_C)_______$(":          "C_______$(",
		"$(VAR_A)foobarzab$":         "Afoobarzab$",
		"foo-\\$(VAR_A":              "foo-\\$(VAR_A",
		"--$($($($($--":              "--$($($($($--",
		"$($($($($--foo$(":           "$($($($($--foo$(",
		"foo0--$($($($(":             "foo0--$($($($(",
		"$(foo$$var)":                "$(foo$$var)",
		"\n$(VAR_A)\n":               "\nA\n",
		"$$(VAR_A)":                  "$(VAR_A)",
		"$$(VAR_A) and ä$ö $(VAR_A)": "$(VAR_A) and ä$ö A",
	} {
		if got := expand(in, vars); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestEnv(t *testing.T) {
	image := pod.Image{Cmd: []string{"run"}, Env: []string{"PATH=/image", "IMAGE=i", "BOTH=image", "broken", "=x"}}
	for _, test := range []struct {
		name, env string
		image     pod.Image
		want      []string
	}{
		{"the image's alone", "", image, []string{"PATH=/image", "HOSTNAME=p", "IMAGE=i", "BOTH=image"}},
		{"an image without a PATH", "", pod.Image{Cmd: []string{"run"}}, []string{"PATH=" + defaultPath, "HOSTNAME=p"}},
		{"the manifest wins", "env: [{name: BOTH, value: pod}, {name: PATH, value: /pod}, {name: HOSTNAME, value: other}]", image,
			[]string{"PATH=/pod", "HOSTNAME=other", "IMAGE=i", "BOTH=pod"}},
		{"values see those above them, and nothing of the image", "env: [{name: A, value: $(B)}, {name: B, value: b}, {name: C, value: $(B)-$(IMAGE)-$(HOSTNAME)-$$(B)}]", image,
			[]string{"PATH=/image", "HOSTNAME=p", "IMAGE=i", "BOTH=image", "A=$(B)", "B=b", "C=b-$(IMAGE)-$(HOSTNAME)-$(B)"}},
		{"the last of one name wins, and sees the one before", "env: [{name: A, value: '1'}, {name: B, value: b}, {name: A, value: $(A)2}]", pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + defaultPath, "HOSTNAME=p", "A=12", "B=b"}},
		{"an empty value is one", "env: [{name: A}]", pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + defaultPath, "HOSTNAME=p", "A="}},
		{"newlines stay inside", `env: [{name: HOME, value: "/\nroot::0:0::/:/bin/sh"}]`, pod.Image{Cmd: []string{"run"}},
			[]string{"PATH=" + defaultPath, "HOSTNAME=p", "HOME=/\nroot::0:0::/:/bin/sh"}},
	} {
		plan := build(t, podYAML(one(test.env)), test.image)
		if diff := cmp.Diff(test.want, plan.Containers[0].Env); diff != "" {
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
	got := build(t, text, pod.Image{Cmd: []string{"run"}}).Containers[0].Env[2:]
	want := []string{"NAME=p", "NAMESPACE=ns", "UID=uid-1", "LABEL=label", "NOLABEL=", "ANNOTATION=an\nnotation", "NODE=node-1", "ACCOUNT=default", "ALL=p/uid-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
