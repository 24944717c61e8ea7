package runner

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// install puts a program of testdata into a layer.
func install(t *testing.T, layer, name string) {
	t.Helper()
	b, err := testProgram(name, "gcc", "-static", "-O1", "testdata/"+name+".c", "-o")
	if err == nil {
		err = os.WriteFile(filepath.Join(layer, "bin", name), b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// seenLayer is a layer with /bin/seen, which tells what a process is: testdata/seen.c.
func seenLayer(t *testing.T) string {
	t.Helper()
	l := layer(t)
	install(t, l, "seen")
	passwd := "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
	if err := os.WriteFile(filepath.Join(l, "etc/passwd"), []byte(passwd), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l, "private"), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// What a process of a container is, and may do, is the same whether libcontainer makes it
// with its own means alone or the trampoline has a part in it: field by field, for a
// container's first process, a command, and a command with a terminal.
func TestTheTrampolineMakesWhatLibcontainerMakes(t *testing.T) {
	testenv.NoLeaks(t)
	l := seenLayer(t)
	var list []pod.Container
	add := func(name string, change func(c *pod.Container)) {
		c := shell(l, name, "")
		c.Args = []string{"seen", "calls", "stay"}
		c.Env = append(c.Env, "A=1", "B=2", "A=3")
		change(&c)
		list = append(list, c)
	}
	add("plain", func(c *pod.Container) {})
	add("nnp", func(c *pod.Container) { c.NoNewPrivileges = true })
	add("user", func(c *pod.Container) { c.User, c.SupplementalGroups = "1000:1000", []uint32{5, 2000}; c.Cwd = "/tmp" })
	add("user-nnp", func(c *pod.Container) { c.User, c.NoNewPrivileges, c.Env = "user", true, append(c.Env, "HOME=") })
	add("nobody", func(c *pod.Container) { c.User, c.Capabilities, c.OOMScoreAdj = "4711", nil, 1000 })
	add("dropped", func(c *pod.Container) { c.Capabilities, c.NoNewPrivileges = nil, true })
	add("admin", func(c *pod.Container) {
		c.Capabilities = append(slices.Clone(testCaps), "CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_SYS_PTRACE")
	})
	add("admin-user", func(c *pod.Container) {
		c.User, c.Capabilities = "1000", append(slices.Clone(testCaps), "CAP_SYS_ADMIN")
	})
	add("unconfined", func(c *pod.Container) { c.SeccompUnconfined = true })
	add("unconfined-user", func(c *pod.Container) { c.SeccompUnconfined, c.User, c.NoNewPrivileges = true, "1000", true })
	add("privileged", func(c *pod.Container) {
		c.Privileged, c.SeccompUnconfined, c.Capabilities = true, true, capabilityNames(1<<41-1)
	})
	add("own", func(c *pod.Container) { c.Seccomp = ownProfile })
	add("own-nnp", func(c *pod.Container) { c.Seccomp, c.NoNewPrivileges, c.User = ownProfile, true, "1000" })
	add("readonly", func(c *pod.Container) { c.ReadOnlyRoot, c.OOMScoreAdj = true, 500 })

	if testing.Short() { // an emulated machine takes seconds for each process: two users, both ways each
		list = slices.DeleteFunc(list, func(c pod.Container) bool {
			return !slices.Contains([]string{"plain", "nnp", "user", "user-nnp"}, c.Name)
		})
	}
	want, got := map[string][]string{}, map[string][]string{}
	for some := range slices.Chunk(list, 4) { // so that a pod starts in time on a slow machine
		maps.Copy(want, lookAtAll(t, some, nil))
		maps.Copy(got, lookAtAll(t, some, testTrampoline()))
	}
	for _, where := range slices.Sorted(maps.Keys(want)) {
		compareLines(t, where, want[where], got[where])
		if text := strings.Join(want[where], "\n"); strings.HasPrefix(where, "plain") && (!strings.Contains(text, "Seccomp_filters:\t1") || !strings.Contains(text, "call mount Operation not permitted")) {
			t.Errorf("%s: it has no filter:\n%s", where, text)
		}
		if text := strings.Join(want[where], "\n"); runtime.GOARCH == "arm" && !strings.HasPrefix(where, "own") && !strings.Contains(text, "call 403 Invalid argument") {
			t.Errorf("%s: clock_gettime64 is not for it:\n%s", where, text)
		}
	}
	if len(want) != 3*len(list) {
		t.Errorf("%d processes were looked at, of %d containers", len(want), len(list))
	}
}

// ownProfile refuses calls by numbers of its own, and what the default one lets pass.
var ownProfile = json.RawMessage(`{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
	{"names": ["mount", "keyctl"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28},
	{"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 29, "args": [{"index": 0, "value": 4660, "op": "SCMP_CMP_EQ"}]},
	{"names": ["acct", "clone"], "action": "SCMP_ACT_LOG"}]}`)

// lookAtAll runs containers and tells what their processes are, by container and way.
func lookAtAll(t *testing.T, list []pod.Container, by *trampoline.Program) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	p := prepare(t, newPlan(nil, list))
	p.alone = by == nil
	p.begin()
	st := p.until("started", func(st pod.Status) bool {
		return !slices.ContainsFunc(st.Containers, func(c pod.ContainerStatus) bool { return c.State.Running == nil && c.State.Terminated == nil })
	})
	for _, c := range st.Containers {
		if end := c.State.Terminated; end != nil {
			t.Errorf("%s: %+v %s", c.Name, end, p.log(c.Name))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	for i := range list {
		name := list[i].Name
		waitLog(t, p, name, "\nthat is all")
		all[name+": first process"] = lines(p.log(name))
		_, out := p.request(&wire.ExecRequest{Container: name, Args: []string{"seen", "calls"}, Env: []string{"C=3", "A=4"}})
		all[name+": command"] = lines(out)
		all[name+": command with a terminal"] = lines(onTerminal(t, p, name, "seen", "calls"))
	}
	p.stop(0)
	return all
}

func lines(text string) []string {
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n")
}

// compareLines says in which lines two processes differ.
func compareLines(t *testing.T, where string, want, got []string) {
	t.Helper()
	if len(want) < 100 {
		t.Errorf("%s: only %d lines: %q", where, len(want), want)
	}
	for i := range max(len(want), len(got)) {
		w, g := "nothing", "nothing"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			t.Errorf("%s:\n got %s\nwant %s", where, g, w)
		}
	}
}

// onTerminal is what a command with a terminal says.
func onTerminal(t *testing.T, p *testPod, container string, args ...string) string {
	t.Helper()
	conn, err := p.place.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = wire.WriteRequest(conn, wire.Request{Verb: wire.Exec, Exec: &wire.ExecRequest{Container: container, Args: args, TTY: true, Rows: 24, Cols: 80}})
	if err != nil {
		t.Fatal(err)
	}
	f, files, err := wire.ReadFrame(conn)
	if err != nil || !f.Started || len(files) != 1 {
		t.Fatalf("first frame %+v with %d descriptors: %v", f, len(files), err)
	}
	defer files[0].Close()
	text, _ := io.ReadAll(files[0]) // EIO is its end
	wire.ReadFrame(conn)
	return string(text)
}
