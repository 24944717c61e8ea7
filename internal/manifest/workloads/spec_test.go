package workloads_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/manifest/workloads"
)

// TestUnavailableOfAStatefulSet: how many pods of a StatefulSet may be missing. The default is one; a
// percentage is rounded down, but is at least one pod (getStatefulSetMaxUnavailable in
// pkg/controller/statefulset).
func TestUnavailableOfAStatefulSet(t *testing.T) {
	for _, c := range []struct {
		strategy string
		want     int
	}{
		{"{}", 1},
		{"{type: RollingUpdate, rollingUpdate: {partition: 2}}", 1},
		{"{rollingUpdate: {maxUnavailable: 3}}", 3},
		{"{rollingUpdate: {maxUnavailable: 9}}", 9},
		{"{rollingUpdate: {maxUnavailable: 50%}}", 2},
		{"{rollingUpdate: {maxUnavailable: 10%}}", 1},
		{"{rollingUpdate: {maxUnavailable: 100%}}", 5},
	} {
		text := strings.Replace(claimingSet, "  replicas: 2\n", "  replicas: 5\n  updateStrategy: "+c.strategy+"\n", 1)
		spec, err := workloads.NewSpec(load(t, text).Stored)
		if err != nil {
			t.Fatal(err)
		}
		if spec.MaxUnavailable != c.want {
			t.Errorf("%s: %d may be missing, want %d", c.strategy, spec.MaxUnavailable, c.want)
		}
	}
}
