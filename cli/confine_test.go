package cli

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/cli/internal/admission"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/pod"
)

// A pod in the host's PID namespace takes a cgroup; nothing else does.
func TestHostPIDTakesACgroup(t *testing.T) {
	w := newWorld(t)
	w.findings = []host.Finding{{Name: host.Limits, Level: host.Warning, Detail: "nothing is delegated", Cure: "delegate it"}}
	shared := strings.Replace(oneContainer, "spec:", "spec:\n  hostPID: true", 1)
	got := w.begin(shared, "up", "-d", "-").wait()
	want := "podrun: pod web: hostPID takes a cgroup of the pod's own, by which all of its processes are ended: nothing is delegated\nhint: delegate it\n"
	if got.code != 125 || got.err != want {
		t.Errorf("exit code %d, stderr %q, want %q", got.code, got.err, want)
	}
	if w.dirs.Pod("default", "web").Exists() {
		t.Error("the pod was made")
	}
}

// A process that waits to become a pod's is no stranger in a cgroup that is looked at for hostPID.
func TestHostPIDIsAloneInItsCgroup(t *testing.T) {
	w := newWorld(t)
	f := &cmdutil.Env{Getenv: func(string) string { return "" }, Deps: w, Prespawn: &cmdutil.Prespawn{}}
	if err := admission.RefuseHostPID(f, &pod.Plan{Name: "web", HostPID: true}); err != nil || !f.Prespawn.Over {
		t.Errorf("%v, nothing is begun any more: %v", err, f.Prespawn.Over)
	}
}
