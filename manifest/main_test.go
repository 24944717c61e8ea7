package manifest

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/properties"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(hostileEnv); name != "" {
		takeHostile(name)
		return
	}
	properties.Main(m, "200")
}

// podYAML is a Pod whose spec is given, as a document.
func podYAML(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: " + spec + "\n"
}

// one is the spec of a Pod with one container, whose other fields are given.
func one(fields string) string {
	return "{containers: [{name: c, image: busybox:1.36" + prefixed(fields) + "}]}"
}

func prefixed(fields string) string {
	if fields == "" {
		return ""
	}
	return ", " + fields
}

func load(t *testing.T, text string) *Object {
	t.Helper()
	objects, err := Load("pod.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%d objects, want 1", len(objects))
	}
	return &objects[0]
}

func decodePod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	objects, err := Decode("pod.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0].Pod
}

// mistakes gives what Load says, without the file's name.
func mistakes(text string) []string {
	_, err := Load("f", []byte(text))
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "f: ")
	}
	return lines
}
