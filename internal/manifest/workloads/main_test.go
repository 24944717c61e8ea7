package workloads_test

import (
	"github.com/podrun/podrun/internal/testmanifest"
)

// Short names of the helpers of the tests of manifests.
var load = testmanifest.Load
