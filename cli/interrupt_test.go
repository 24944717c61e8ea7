package cli

import (
	"os"
	"syscall"
	"testing"

	"github.com/podrun/podrun/pod"
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
			w := newWorld(t)
			asked := make(chan struct{}) // once: two requests may overtake each other
			w.script = func(s *supervisor) {
				s.publish(status(pod.Running, isRunning("app")))
				s.log("app", 0, "stdout F up")
				if grace := <-s.stops; grace != nil {
					t.Errorf("the first stop has a grace of %d s instead of the pod's", *grace)
				}
				close(asked)
				if len(tc.signals) > 1 {
					if grace := <-s.stops; grace == nil || *grace != 0 {
						t.Errorf("the second stop is not at once")
					}
				}
				s.log("app", 0, "stdout F going")
				st := status(pod.Failed, terminated("app", 143, "Error", ""))
				st.Deleting = true
				s.end(st)
			}
			p := w.begin("", "up", w.file(oneContainer))
			p.says("up\n")
			for i, sig := range tc.signals {
				p.signals <- sig
				p.says([]string{"stopping pod web, for up to 7 s", "stopping at once"}[i])
				<-asked
			}
			got := p.wait()
			if got.code != tc.code || got.out != "up\ngoing\n" {
				t.Errorf("%+v", got)
			}
			if w.dirs.Pod("default", "web").HasRemains() {
				t.Error("the pod was not removed")
			}
		})
	}
}
