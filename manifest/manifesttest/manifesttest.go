// Package manifesttest writes Pods for the tests of the packages below manifest.
package manifesttest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"
)

// PodYAML is a Pod whose spec is given, as a document.
func PodYAML(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec + "\n"
}

// One is the spec of a Pod with one container, whose other fields are given.
func One(fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return "{containers: [{name: c, image: busybox:1.36" + fields + "}]}"
}

// Decode reads a Pod as it is written.
func Decode(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	if err := kyaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
