package status_test

import (
	"github.com/podrun/podrun/internal/manifest/manifesttest"
	"github.com/podrun/podrun/internal/testmanifest"
)

// Short names of the helpers of the tests of manifests.
var podYAML, load = manifesttest.PodYAML, testmanifest.Load
