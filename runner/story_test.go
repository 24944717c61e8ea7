package runner

import (
	"os"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// The main case: init containers in order, then apps together, which share a volume, the network, the
// hostname and the memory of the pod, but not their processes.
func TestPodOfTwoInitsAndTwoApps(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	data := []pod.Mount{{Volume: "data", Path: "/data"}}
	first := shell(l, "first", "echo one > /data/order")
	second := shell(l, "second", "echo two >> /data/order; cat /data/order")
	server := shell(l, "server", "echo shared > /dev/shm/from-server; cat /etc/hostname; hostname; "+
		"exec httpd -f -p 127.0.0.1:8080 -h /data")
	client := shell(l, "client", "until wget -q -O - http://localhost:8080/order 2>/dev/null; do sleep 0.05; done; "+
		"cat /dev/shm/from-server; hostname; echo $$; cat /proc/1/comm; exec sleep 1000")
	for _, c := range []*pod.Container{&first, &second, &server, &client} {
		c.Mounts = data
	}
	plan := newPlan([]pod.Container{first, second}, []pod.Container{server, client})
	plan.Volumes = []pod.Volume{{Name: "data", Kind: pod.EmptyDir}}
	p := start(t, plan)
	st := p.running()
	for _, c := range st.InitContainers {
		if c.State.Terminated == nil || c.State.Terminated.Reason != "Completed" {
			t.Errorf("init container %s: %+v", c.Name, c.State)
		}
	}
	if got := p.log("second"); got != "one\ntwo\n" {
		t.Errorf("the init containers wrote %q", got)
	}
	waitLog(t, p, "client", "1\nsh\n")
	want := "one\ntwo\nshared\np\n1\nsh\n"
	if got := p.log("client"); !strings.HasPrefix(got, want) {
		t.Errorf("the client saw %q, want %q", got, want)
	}
	if got := p.log("server"); got != "p\np\n" {
		t.Errorf("the server's hostname and /etc/hostname: %q", got)
	}
	final := p.stop(1)
	if !final.Deleting || final.Phase != pod.Failed {
		t.Errorf("phase %s, deleting %v after a stop by signal", final.Phase, final.Deleting)
	}
}

// waitLog waits until a container has logged text.
func waitLog(t *testing.T, p *testPod, container, text string) {
	t.Helper()
	code, out := p.exec(container, "/bin/true")
	for ; code == 0; code, out = p.exec(container, "/bin/true") {
		if strings.Contains(p.log(container), text) {
			return
		}
	}
	t.Fatalf("%s ended without logging %q: %s", container, text, out)
}

func TestPodSharesPIDs(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	// "left" exits while a child of it continues with its output.
	plan := newPlan(nil, []pod.Container{
		shell(l, "left", "(trap '' HUP TERM; sleep 1000) & cat /proc/1/comm"),
		shell(l, "stays", "exec sleep 1000"),
	})
	plan.ShareProcessNamespace = true
	p := start(t, plan)
	st := p.until("rid of left", func(st pod.Status) bool {
		return st.Containers[0].State.Terminated != nil && st.Containers[1].State.Running != nil
	})
	if st.Containers[0].State.Terminated.ExitCode != 0 {
		t.Errorf("left: %+v", st.Containers[0].State.Terminated)
	}
	if got := p.log("left"); got != "podrun-pause\n" {
		t.Errorf("PID 1 is %q", got)
	}
	if code, out := p.exec("stays", "/bin/sh", "-c", "ps | grep -c '[s]leep 1000'"); code != 0 || out != "1\n" {
		t.Errorf("one sleep must be left, of the container that stays: %d %q", code, out)
	}
	// PID 1 of the shared namespace reaps an orphan.
	if code, out := p.exec("stays", "/bin/sh", "-c", "(sh -c 'sleep 0 & exec true' &) ; while grep -q ') Z' /proc/[0-9]*/stat; do :; done"); code != 0 {
		t.Errorf("orphans are not reaped: %d %q", code, out)
	}
}

func TestPodFailures(t *testing.T) {
	l := layer(t)
	noSuch := shell(l, "a", "")
	noSuch.Args = []string{"/bin/nope"}
	notExecutable := shell(l, "a", "")
	notExecutable.Args = []string{"/etc/passwd"}
	nobody := shell(l, "a", "true")
	nobody.User = "nobody-knows"
	root := shell(l, "a", "true")
	root.NonRoot = true
	unmapped := shell(l, "a", "true")
	unmapped.User = "70000"
	noLayer := shell(l+"/missing", "a", "true")
	tests := []struct {
		name   string
		c      pod.Container
		code   int
		reason string
		text   string
	}{
		{"exit code", shell(l, "a", "exit 7"), 7, "Error", ""},
		{"message", shell(l, "a", "echo because > /dev/termination-log; exit 1"), 1, "Error", "because\n"},
		{"no such program", noSuch, 127, "StartError", "/bin/nope"},
		{"not executable", notExecutable, 126, "StartError", "permission denied"},
		{"user not in the image", nobody, 128, "", "nobody-knows"},
		{"root where it must not be", root, 128, "", "runAsNonRoot"},
		{"user outside the map", unmapped, 128, "", "/etc/subuid"},
		{"layer is gone", noLayer, 128, "", "missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testenv.NoLeaks(t)
			p := start(t, newPlan(nil, []pod.Container{tt.c}))
			var got *pod.Terminated
			var waiting *pod.Waiting
			p.until("failed", func(st pod.Status) bool {
				got, waiting = st.Containers[0].State.Terminated, st.Containers[0].State.Waiting
				return got != nil || (waiting != nil && strings.Contains(waiting.Message, tt.text) && tt.text != "")
			})
			switch {
			case got != nil && strings.Contains(got.Message, "unable to start"):
				t.Errorf("message %q says twice that there was no start", got.Message)
			case got != nil && (got.ExitCode != tt.code || !strings.Contains(got.Message, tt.text) || (tt.reason != "" && got.Reason != tt.reason)):
				t.Errorf("terminated %+v, want code %d, reason %q, message with %q", got, tt.code, tt.reason, tt.text)
			case got == nil && tt.reason != "":
				t.Errorf("waiting %+v, want terminated with %s", waiting, tt.reason)
			}
		})
	}
}

func TestPodUser(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	named := shell(l, "named", "id; exec sleep 1000")
	named.User, named.SupplementalGroups = "user", []uint32{3000}
	number := shell(l, "number", "id; exec sleep 1000")
	number.User = "1234:4321"
	p := start(t, newPlan(nil, []pod.Container{named, number}))
	p.running()
	if _, got := p.exec("named", "/bin/id"); got != "uid=1000(user) gid=1000(user) groups=2000(extra),3000\n" &&
		got != "uid=1000(user) gid=1000(user) groups=1000(user),2000(extra),3000\n" {
		t.Errorf("named user: %q", got)
	}
	if _, got := p.exec("number", "/bin/id"); !strings.HasPrefix(got, "uid=1234 gid=4321") {
		t.Errorf("numeric user: %q", got)
	}
}

func TestPodMemoryVolumeIsBoundedAndShared(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	w := shell(l, "w", "dd if=/dev/zero of=/mem/x bs=64k count=64; echo done; exec sleep 1000")
	r := shell(l, "r", "exec sleep 1000")
	w.Mounts = []pod.Mount{{Volume: "m", Path: "/mem"}}
	r.Mounts = []pod.Mount{{Volume: "m", Path: "/mem", ReadOnly: true}}
	plan := newPlan(nil, []pod.Container{w, r})
	plan.Volumes = []pod.Volume{{Name: "m", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}}
	p := start(t, plan)
	p.running()
	waitLog(t, p, "w", "done")
	if got := p.log("w"); !strings.Contains(got, "No space left on device") {
		t.Errorf("writing 4 MiB into 1 MiB said %q", got)
	}
	if code, out := p.exec("r", "/bin/sh", "-c", "test -s /mem/x && ! touch /mem/y"); code != 0 {
		t.Errorf("the reader must see the file and not be able to write: %s", out)
	}
}

func TestPodRemovesEverything(t *testing.T) {
	testenv.NoLeaks(t)
	p := start(t, newPlan(nil, []pod.Container{shell(layer(t), "a", "mkdir /x; echo y > /x/y; exec sleep 1000")}))
	p.running()
	if end := p.stop(0).Containers[0].State.Terminated; end == nil || end.ExitCode != 137 {
		t.Errorf("killed at once: %+v", end)
	}
	for _, dir := range []string{p.place.RootfsDir(), p.place.LibcontainerDir()} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v %v", dir, left, err)
		}
	}
	if _, err := os.Stat(p.place.RuntimeDir() + "/sandbox"); !os.IsNotExist(err) {
		t.Errorf("the sandbox's directory is still there: %v", err)
	}
}
