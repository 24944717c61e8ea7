package manifest

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/manifesttest"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(hostileEnv); name != "" {
		takeHostile(name)
		return
	}
	os.Exit(m.Run())
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Short names of functions of package manifesttest.
var podYAML, one, decodePod = manifesttest.PodYAML, manifesttest.One, manifesttest.Decode

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

// mistakes returns Load's messages, without the file's name.
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
