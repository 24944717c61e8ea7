// Package manifesttest makes Pods for the tests of the packages below manifest.
package manifesttest

import (
	"strings"
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

// YAML encodes an object.
func YAML(t *testing.T, object any) string {
	t.Helper()
	text, err := kyaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Resizable is the spec of a Pod whose resources, images and command tests change.
const Resizable = `{
  initContainers: [
    {name: prepare, image: b, resources: {limits: {memory: 8Mi}}},
    {name: side, image: b, restartPolicy: Always, resources: {requests: {cpu: 10m}}}],
  containers: [
    {name: web, image: b, command: [run], resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 32Mi}},
     resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]},
    {name: log, image: b}]}`

// Changed returns Resizable with one difference.
func Changed(t *testing.T, old, new string) string {
	t.Helper()
	if strings.Count(Resizable, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(Resizable, old))
	}
	return strings.Replace(Resizable, old, new, 1)
}
