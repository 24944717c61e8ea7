package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// update rewrites golden files and the reference page: go test ./manifest -update
var update = flag.Bool("update", false, "rewrite the golden files and the reference page")

func TestMain(m *testing.M) {
	if name := os.Getenv(hostileEnv); name != "" {
		takeHostile(name)
		return
	}
	os.Exit(m.Run())
}

// golden compares text with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date (go test ./manifest -update rewrites it):\n%s", file, diff)
	}
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
