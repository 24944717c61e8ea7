// Package manifesttest makes Pods for the tests of the packages below manifest.
package manifesttest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"
)

// PodYAML returns a document with a Pod with the given spec.
func PodYAML(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec + "\n"
}

// One returns the spec of a Pod with one container that has the given fields, too.
func One(fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return "{containers: [{name: c, image: busybox:1.36" + fields + "}]}"
}

// Decode decodes a Pod without defaults.
func Decode(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := kyaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
