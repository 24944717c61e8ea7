package up_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/pod"
)

func TestInterruptStopsAndRemoves(t *testing.T) {
	for name, tc := range map[string]struct {
		signals []os.Signal
		code    int
	}{
		"once":      {[]os.Signal{syscall.SIGINT}, 130},
		"twice":     {[]os.Signal{syscall.SIGINT, syscall.SIGINT}, 130},
		"terminate": {[]os.Signal{syscall.SIGTERM}, 143},
		"hang up":   {[]os.Signal{syscall.SIGHUP}, 129},
	} {
		t.Run(name, func(t *testing.T) {
			h := clitest.NewHost(t)
			asked := make(chan struct{}) // once: two requests may overtake each other
			h.Script = func(s *clitest.Supervisor) {
				s.Publish(clitest.Status(pod.Running, clitest.RunningContainer("app")))
				s.Log("app", 0, "stdout F up")
				if grace := <-s.Stops; grace != nil {
					t.Errorf("the first stop has a grace of %d s instead of the pod's", *grace)
				}
				close(asked)
				if len(tc.signals) > 1 {
					if grace := <-s.Stops; grace == nil || *grace != 0 {
						t.Errorf("the second stop is not at once")
					}
				}
				s.Log("app", 0, "stdout F going")
				st := clitest.Status(pod.Failed, clitest.TerminatedContainer("app", 143, "Error", ""))
				st.Deleting = true
				s.End(st)
			}
			p := h.Begin("", "up", h.File(clitest.OneContainer))
			p.WaitOutput("up\n")
			for i, sig := range tc.signals {
				p.Signals <- sig
				p.WaitOutput([]string{"stopping pod web, for up to 7 s", "stopping at once"}[i])
				<-asked
			}
			got := p.Wait()
			if got.Code != tc.code || got.Out != "up\ngoing\n" {
				t.Errorf("%+v", got)
			}
			if h.Dirs.Pod("default", "web").HasRemains() {
				t.Error("the pod was not removed")
			}
		})
	}
}
