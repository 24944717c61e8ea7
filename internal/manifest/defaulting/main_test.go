package defaulting_test

import (
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/testmanifest"
)

// Short names of the helpers of the tests of manifests.
var podYAML, decodePod, load = manifesttest.PodYAML, manifesttest.Decode, testmanifest.Load
