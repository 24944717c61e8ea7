package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/environ"
	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/lifecycle"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/clock"
	"github.com/podrun/podrun/runner/handoff"
	"github.com/podrun/podrun/runner/sandbox"
)

// testPod is a real pod inside this process, which is PID 1 of its own namespaces: it has the same engine,
// control socket and loop as the supervisor's.
type testPod struct {
	t        *testing.T
	plan     *pod.Plan
	root     string
	place    store.Pod
	engine   *engine
	control  *control
	listener *net.UnixListener
	changes  chan pod.Status
	final    chan *pod.Status
	alone    bool              // without the exec shim: libcontainer makes all processes
	by       *execshim.Program // nil: testShim
}

// layer returns a busybox root file system that all tests of the package share.
func layer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := testenv.BusyboxRootfs(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

var testCaps = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT"}

// shell returns a container that runs a shell script.
func shell(layer, name, script string) pod.Container {
	return pod.Container{
		Name: name, Image: "busybox", ImageID: "sha256:0", Layers: []string{layer},
		Args: []string{"/bin/sh", "-c", environ.Literal(script)}, Env: []string{"PATH=/bin"}, Cwd: "/", Capabilities: testCaps,
		TerminationMessagePath: "/dev/termination-log", TerminationMessageFrom: pod.MessageFile,
	}
}

func newPlan(inits, apps []pod.Container) *pod.Plan {
	return &pod.Plan{
		Version: pod.PlanVersion, Namespace: "default", Name: "p", UID: "uid", Hostname: "p",
		RestartPolicy: pod.RestartNever, GraceSeconds: 10, InitContainers: inits, Containers: apps,
	}
}

// testEngine returns an engine without pod init: this process, PID 1, has the namespaces.
func testEngine(plan *pod.Plan, place store.Pod) *engine {
	ns := sandbox.Namespaces{Net: "/proc/1/ns/net", IPC: "/proc/1/ns/ipc", UTS: "/proc/1/ns/uts"}
	if plan.Network == pod.NetworkHost { // as PodNamespaces
		ns.Net = ""
	}
	e := newEngine(plan, place, handoff.New(nil, place), ns)
	e.shim = testShim()
	return e
}

// start runs a Plan. The pod is stopped when the test ends.
func start(t *testing.T, plan *pod.Plan) *testPod {
	t.Helper()
	p := prepare(t, plan)
	p.begin()
	return p
}

// byEachInit runs a test with the pods that start returns: with the init in C, as in a release, and with libcontainer's.
func byEachInit(t *testing.T, run func(t *testing.T, start func(t *testing.T, plan *pod.Plan) *testPod)) {
	t.Run("in C", func(t *testing.T) { run(t, start) })
	t.Run("libcontainer's", func(t *testing.T) {
		run(t, func(t *testing.T, plan *pod.Plan) *testPod {
			t.Helper()
			p := prepare(t, plan)
			p.alone = true
			p.begin()
			return p
		})
	})
}

// dirs returns the roots of the pod's store.
func (p *testPod) dirs() store.Dirs {
	return store.Dirs{Data: filepath.Join(p.root, "data"), Runtime: filepath.Join(p.root, "run")}
}

// recordOf returns the file in which supervisors record the state of a pod.
func recordOf(p store.Pod) string { return filepath.Join(p.RuntimeDir(), "state.json") }

// poke notifies the pod of a changed object.
func (p *testPod) poke() { _ = p.engine.objectChanged(wire.ChangedRequest{}) }

// prepare makes the pod's directories.
func prepare(t *testing.T, plan *pod.Plan) *testPod {
	t.Helper()
	p := &testPod{t: t, plan: plan, root: t.TempDir()}
	p.place = p.dirs().Pod(plan.Namespace, plan.Name)
	return p
}

// begin runs the pod.
func (p *testPod) begin() {
	t, plan, place := p.t, p.plan, p.place
	t.Helper()
	if err := place.Create(plan, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sethostname([]byte(plan.Hostname)); err != nil { // pod init's task
		t.Fatal(err)
	}
	listener, err := place.Listen()
	if err != nil {
		t.Fatal(err)
	}
	e := testEngine(plan, place)
	if p.by != nil {
		e.shim = p.by
	}
	if p.alone {
		e.shim = nil
	}
	p.engine, p.control, p.listener = e, newControl(e), listener
	p.changes, p.final = make(chan pod.Status, 256), make(chan *pod.Status, 1)
	go p.control.serve(listener)
	go func() {
		l := loop{plan: plan, executor: e, now: clock.Now, prepare: e.prepare, publish: func(st *pod.Status) {
			p.control.publish(st)
			p.changes <- *st
		}, recordEvents: func(log *pod.EventLog) {
			if err := place.WriteEvents(log); err != nil {
				t.Error(err)
			}
		}}
		p.final <- l.run()
	}()
	t.Cleanup(func() { p.stop(0) })
}

// stop ends the pod within a grace period and returns its final status.
func (p *testPod) stop(grace int64) *pod.Status {
	p.t.Helper()
	p.engine.emit(lifecycle.Event{Kind: lifecycle.StopRequested, GraceSeconds: &grace})
	return p.ended()
}

// ended waits for the pod's end.
func (p *testPod) ended() *pod.Status {
	p.t.Helper()
	select {
	case st := <-p.final:
		p.final <- st // for the next caller
		if p.listener != nil {
			p.control.shutdown(p.listener)
			p.listener = nil
		}
		return st
	case <-time.After(time.Minute):
		p.t.Fatal("the pod has not ended within a minute")
		return nil
	}
}

// untilTime is how long until waits. It only ends tests that fail anyway: a pod that starts thousands of processes
// may take minutes.
const untilTime = 10 * time.Minute

// until waits for a status that satisfies ok.
func (p *testPod) until(what string, ok func(pod.Status) bool) pod.Status {
	p.t.Helper()
	var last pod.Status
	timeout := time.After(untilTime)
	for {
		select {
		case last = <-p.changes:
			if ok(last) {
				return last
			}
		case <-timeout:
			p.t.Fatalf("the pod is not %s within %v; status %+v", what, untilTime, last)
		}
	}
}

func (p *testPod) running() pod.Status {
	p.t.Helper()
	return p.until("running", func(st pod.Status) bool { return st.Phase == pod.Running && allRunning(st.Containers) })
}

func allRunning(cs []pod.ContainerStatus) bool {
	for _, c := range cs {
		if c.State.Running == nil {
			return false
		}
	}
	return true
}

// log returns the text that an instance of a container has written, without headers.
func (p *testPod) log(container string) string {
	p.t.Helper()
	var b strings.Builder
	for _, r := range parse(p.t, p.place.LogFile(container, 0)) {
		b.WriteString(r[2])
		if r[1] == "F" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// exec runs a command in a container as a client would, and returns its output
// and exit code, or the error's code and message.
func (p *testPod) exec(container string, args ...string) (int, string) {
	p.t.Helper()
	return p.request(&wire.ExecRequest{Container: container, Args: args})
}

func (p *testPod) request(req *wire.ExecRequest) (int, string) {
	p.t.Helper()
	conn, err := p.place.Dial()
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	stdin, err := os.Open("/dev/null")
	if err != nil {
		p.t.Fatal(err)
	}
	defer stdin.Close()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	err = wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: req}, stdin, w, w)
	w.Close()
	if err != nil {
		p.t.Fatal(err)
	}
	output := make(chan string)
	go func() {
		var b strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				output <- b.String()
				return
			}
		}
	}()
	for {
		f, _, err := wire.ReadFrame(conn)
		switch {
		case err != nil:
			p.t.Fatal(fmt.Errorf("read frame: %w", err))
		case f.Error != nil:
			<-output
			return f.Error.Code, f.Error.Message
		case f.Exit != nil:
			return *f.Exit, <-output
		}
	}
}

var logLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)$`)

// parse parses a log and fails on anything that is not CRI format.
func parse(t *testing.T, path string) (records [][3]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		m := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not a CRI log line: %q", line)
		}
		records = append(records, [3]string{m[1], m[2], m[3]})
	}
	return records
}
