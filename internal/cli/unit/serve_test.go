package unit_test

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/exitcode"
	"github.com/podrun/podrun/internal/cli/internal/follow"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/pod"
)

func TestExitCodeFrom(t *testing.T) {
	ended := func(codes map[string]int) *pod.Status {
		st := &pod.Status{Phase: pod.Failed}
		for _, name := range []string{"app", "side"} {
			st.Containers = append(st.Containers, clitest.TerminatedContainer(name, codes[name], "Error", ""))
		}
		return st
	}
	one, both, none := ended(map[string]int{"app": 3}), ended(map[string]int{"app": 3, "side": 4}), ended(nil)
	for _, tc := range []struct {
		rule follow.ExitCodeFrom
		st   *pod.Status
		want int
	}{
		{"app", one, 3}, {"side", one, 0}, {"side", both, 4},
		{follow.ExitAny, one, 1}, {follow.ExitAny, none, 0}, {follow.ExitAll, one, 0}, {follow.ExitAll, both, 1}, {follow.ExitNone, both, 0},
	} {
		if got := tc.rule.Code([]*podup.Target{{Last: tc.st}}); got != tc.want {
			t.Errorf("--exit-code-from %s: %d, want %d", tc.rule, got, tc.want)
		}
	}
	// Failures that are not a container's remain failures.
	stoppedByOther := &pod.Status{Phase: pod.Failed, Deleting: true}
	err := &exitcode.Error{Code: 7}
	if got := follow.ExitNone.Result([]*podup.Target{{Last: stoppedByOther}}, []error{err}); exitcode.Of(got) != 7 {
		t.Errorf("a pod that somebody else has stopped: %v", got)
	}
	if got := follow.ExitNone.Result([]*podup.Target{{}}, []error{err}); exitcode.Of(got) != 7 {
		t.Errorf("a pod that could not be watched: %v", got)
	}
}

// TestExitCodeOfUnstartedContainer checks that a container that was never started counts as failed.
func TestExitCodeOfUnstartedContainer(t *testing.T) {
	st := &pod.Status{Phase: pod.Failed, Containers: []pod.ContainerStatus{clitest.WaitingContainer("app", "PodInitializing", "")}}
	if got := follow.ExitCodeFrom("app").Code([]*podup.Target{{Last: st}}); got != 1 {
		t.Errorf("exit code %d", got)
	}
}

func TestExitCodeFromRefusals(t *testing.T) {
	h := clitest.NewHost(t)
	for _, args := range [][]string{
		{"up", "-d", "--exit-code-from", "app", h.File(clitest.OneContainer)},
		{"up", "--exit-code-from", "nobody", h.File(clitest.OneContainer)},
		{"up", "web.kube"},
	} {
		if got := h.Run(args...); got.Code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestUpWithExitCodeFrom(t *testing.T) {
	h := clitest.NewHost(t)
	h.Script = func(s *clitest.Supervisor) {
		s.Log("app", 0, "stdout F hello")
		s.End(clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 3, "Error", "")))
	}
	if got := h.Run("up", "--exit-code-from", "app", "--quiet", h.File(clitest.OneContainer)); got.Code != 3 || got.Out != "" {
		t.Errorf("%+v", got)
	}
	if got := h.Run("up", "--exit-code-from", "none", h.File(clitest.OneContainer)); got.Code != 0 || got.Out != "hello\n" {
		t.Errorf("%+v", got)
	}
}
