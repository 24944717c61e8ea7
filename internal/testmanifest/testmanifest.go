// Package testmanifest loads manifests for tests. It imports manifest: tests of the packages below manifest that import it are
// external ones (package build_test); manifesttest is for the others.
package testmanifest

import (
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/manifesttest"
)

// Load loads a file with one object.
func Load(t *testing.T, text string) *manifest.Object {
	t.Helper()
	objects, err := manifest.Load("pod.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%d objects, want 1", len(objects))
	}
	return &objects[0]
}

// Mistakes returns the messages of manifest.Load, without the file's name.
func Mistakes(text string) []string {
	_, err := manifest.Load("f", []byte(text))
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "f: ")
	}
	return lines
}

// Messages returns the messages of mistakes, without their positions in the file.
func Messages(mistakes []string) string {
	var lines []string
	for _, m := range mistakes {
		_, text, _ := strings.Cut(m, ": ")
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// Noon is the present of tests.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ThreePod returns a Pod with an init container, a sidecar and two apps, as it is stored. It is 12 minutes old at
// Noon.
func ThreePod(t *testing.T) *manifest.Object {
	t.Helper()
	o := Load(t, manifesttest.PodYAML("{initContainers: [{name: init, image: i}, {name: side, image: i, restartPolicy: Always}], containers: [{name: a, image: i}, {name: b, image: i}]}"))
	o.Pod.UID, o.Pod.CreationTimestamp.Time, o.Pod.Generation = "uid-1", Noon.Add(-12*time.Minute), 4
	return o
}
