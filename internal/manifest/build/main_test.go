package build_test

import (
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/testmanifest"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Short names of the helpers of the tests of manifests.
var podYAML, one, decodePod, load, mistakes = manifesttest.PodYAML, manifesttest.One, manifesttest.Decode, testmanifest.Load, testmanifest.Mistakes
