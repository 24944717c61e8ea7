package runner

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A pod runs whose image cannot have the label that containers may read, and says so.
func TestLayersThatKeepTheirLabel(t *testing.T) {
	testenv.NoLeaks(t)
	const label = "system_u:object_r:container_ro_file_t:s0"
	l := layer(t)
	plan := newPlan([]pod.Container{shell(l, "first", "exit 0")}, []pod.Container{shell(l, "app", "exec sleep 1000")})
	plan.LayerLabel = label
	w := startWhole(t, plan)
	w.until(running)
	has := make([]byte, 256)
	n, err := unix.Getxattr(l, "security.selinux", has)
	want := 1
	if err == nil && strings.HasPrefix(string(has[:n]), label) { // where there is SELinux it can
		want = 0
	}
	w.until(func(st *pod.Status) bool {
		said := 0
		for _, text := range st.Warnings {
			if strings.HasPrefix(text, "layers of an image keep their SELinux label (1 of them)") {
				said++
			}
		}
		if said > want {
			t.Errorf("warnings %q", st.Warnings)
		}
		return said >= want
	})
}

// What is noticed while a sandbox is made, as what its network cannot do, is among its own
// warnings, which replace those of the last one.
func TestAWarningWhileItIsMade(t *testing.T) {
	plan := newPlan(nil, nil)
	e := testEngine(plan, store.Dirs{Data: t.TempDir(), Runtime: t.TempDir()}.Pod("default", "p"))
	s := e.newSandbox(plan, 0)
	s.warn("one")
	if got := s.warned(); !slices.Equal(got, []string{"one"}) || !slices.Equal(e.warnings, got) {
		t.Errorf("warnings %q, of the engine %q", got, e.warnings)
	}
}
