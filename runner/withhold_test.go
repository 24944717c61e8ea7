package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// The pod warns of what an ephemeral container does not get.
func TestAnEphemeralContainerIsWarnedOf(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	late := shell(l, "late", "exec sleep 1000")
	late.Capabilities = append([]string{"CAP_SYS_PTRACE"}, testCaps...)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.Ephemeral = []pod.Container{late}
	p := start(t, plan)
	p.until("started", func(st pod.Status) bool {
		return len(st.Ephemeral) == 1 && st.Ephemeral[0].State.Running != nil
	})
	if warnings := p.engine.annotate(pod.Status{}).Warnings; !slices.ContainsFunc(warnings, func(text string) bool {
		return strings.HasPrefix(text, "container late does not get CAP_SYS_PTRACE: ")
	}) {
		t.Errorf("warnings %q", warnings)
	}
}
