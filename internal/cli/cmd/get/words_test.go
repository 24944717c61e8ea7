package get_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestObjectArguments checks the errors of commands on pods for a Service, and for a Deployment that does not
// exist.
func TestObjectArguments(t *testing.T) {
	h := clitest.NewHost(t)
	for _, args := range []string{"logs svc/web", "exec svc/web -- ls", "port svc/web"} {
		got := h.Run(strings.Fields(args)...)
		if want := "podrun: \"svc/web\" does not name a pod\nhint: podrun get service lists them, podrun ps lists the pods\n"; got.Err != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
	for _, args := range []string{"exec deploy/web -- ls", "port-forward deploy/web 80", "port deploy/web"} {
		got := h.Run(strings.Fields(args)...)
		if want := "podrun: deployment.apps \"web\" not found\nhint: podrun get deployment.apps lists the objects of a namespace\n"; got.Err != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
