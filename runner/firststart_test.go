package runner

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/lifecycle"
	"github.com/podrun/podrun/pod"
)

// The first containers are made while the network is: not before what they are made of is
// there, and their files tell the network's names once it is known. Of a sandbox that cannot
// be made nothing is left, whoever waits in it.
func TestFirstContainersAreMadeBesideTheNetwork(t *testing.T) {
	testenv.NoLeaks(t)
	app := shell(layer(t), "app", "echo ran")
	later := shell(app.Layers[0], "later", "echo ran")
	later.Vars = []pod.EnvVar{{Name: "IP", From: &pod.EnvRef{Field: "status.podIP"}}}
	plan := newPlan(nil, []pod.Container{app, later})
	p := prepare(t, plan)
	if err := p.place.Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, p.place)
	s := e.raise(0)
	s.undoLater()
	e.prepare([]lifecycle.Action{{Kind: lifecycle.StartContainer, Container: "app"}, {Kind: lifecycle.StartContainer, Container: "later"}})
	got := e.pool.prepared["app"]
	if got == nil || e.pool.prepared["later"] != nil {
		t.Fatalf("prepared are %v", e.pool.prepared)
	}
	select {
	case <-got.made:
		t.Error("it is made of nothing")
	default:
	}
	if err := makeAll(s.foundations()); err != nil {
		t.Fatal(err)
	}
	close(s.laid)
	select {
	case <-got.made:
	case <-time.After(time.Minute):
		t.Fatal("it is not made within a minute")
	}
	if got.x == nil {
		t.Fatal("it could not be made")
	}
	if err := s.nameFiles(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/etc/hosts", got.x.PID)); err != nil || string(b) != hostsFile(plan, nil) {
		t.Errorf("the one that waits has hosts %q: %v", b, err)
	}
	pid := got.x.PID
	e.abandon()
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("it still waits: %v", err)
	}
	if err := s.remove(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{p.place.RootfsDir(), p.place.LibcontainerDir(), s.dir} {
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
	e.prepare([]lifecycle.Action{{Kind: lifecycle.StartContainer, Container: "app"}})
	if len(e.pool.prepared) > 0 {
		t.Error("something is prepared without a sandbox")
	}
}

// A pod whose sandbox cannot be connected has failed for that, in the words that it always
// has, whatever else could not be made; its containers are not there.
func TestFirstStartWithoutNetwork(t *testing.T) {
	for name, volumes := range map[string][]pod.Volume{
		"all else is there": nil,
		"nor are volumes":   {{Name: "v", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromConfigMap, Name: "none"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoLeaks(t)
			testenv.LoopbackUp(t)
			taken, err := net.Listen("tcp", "127.0.0.1:8080")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			plan := newPlan(nil, []pod.Container{shell(layer(t), "app", "echo ran")})
			plan.Volumes = volumes
			plan.Ports = []pod.Port{{Container: "app", Protocol: "TCP", Number: 80, HostPort: 8080}}
			p := start(t, plan)
			st := p.ended()
			if st.Phase != pod.Failed || !strings.Contains(st.Message, "8080") {
				t.Errorf("the pod is %s: %s", st.Phase, st.Message)
			}
			if c := st.Containers[0]; c.ContainerID != "" || c.State.Running != nil {
				t.Errorf("it is %+v", c)
			}
			if left, err := os.ReadDir(p.place.RootfsDir()); err != nil || len(left) > 0 {
				t.Errorf("%v %v is left", left, err)
			}
		})
	}
}
