package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/pod"
)

// TestHostPIDNeedsCgroup checks that only a pod in the host's PID namespace needs a cgroup.
func TestHostPIDNeedsCgroup(t *testing.T) {
	h := clitest.NewHost(t)
	h.Findings = []host.Finding{{Name: host.Limits, Level: host.Warning, Detail: "nothing is delegated", Hint: "delegate it"}}
	shared := strings.Replace(clitest.OneContainer, "spec:", "spec:\n  hostPID: true", 1)
	got := h.Begin(shared, "up", "-d", "-").Wait()
	want := "podrun: pod web: hostPID requires a cgroup of the pod's own, to kill its processes: nothing is delegated\nhint: delegate it\n"
	if got.Code != 125 || got.Err != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.Code, got.Err, want)
	}
	if h.Dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}

// TestHostPIDIgnoresPrespawnedProcess checks that the prespawned first process does not count as a foreign
// process of the cgroup.
func TestHostPIDIgnoresPrespawnedProcess(t *testing.T) {
	h := clitest.NewHost(t)
	f := &cmdutil.Env{Getenv: func(string) string { return "" }, Deps: h}
	preparation := &cmdutil.Preparation{}
	if err := admission.RefuseHostPID(f, preparation, &pod.Plan{Name: "web", HostPID: true}); err != nil || !preparation.Over {
		t.Errorf("%v, nothing is begun any more: %v", err, preparation.Over)
	}
}
