package manifest_test

import (
	"os"
	"testing"

	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/testmanifest"
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

// Short names of the helpers of the tests of manifests.
var podYAML, one, load, mistakes = manifesttest.PodYAML, manifesttest.One, testmanifest.Load, testmanifest.Mistakes
