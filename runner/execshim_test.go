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

	"github.com/podrun/podrun/internal/execshim"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/runner/container"
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

// seenLayer returns a layer with /bin/seen, which prints the attributes of a process: testdata/seen.c.
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

// The attributes, rights and mounts of a container's process are the same whether libcontainer alone makes it or
// the init in C and the exec shim take part: field by field, for a container's first process, a command, and a command
// with a terminal.
func TestExecShimMakesWhatLibcontainerMakes(t *testing.T) {
	testenv.NoLeaks(t)
	l := seenLayer(t)
	var list []pod.Container
	add := func(name string, change func(c *pod.Container)) {
		c := shell(l, name, "")
		c.Args = []string{"seen", "calls", "stay"}
		c.Env = append(c.Env, "A=1", "B=2")
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
		c.Privileged, c.SeccompUnconfined, c.Capabilities = true, true, container.CapabilityNames(1<<41-1)
	})
	add("own", func(c *pod.Container) { c.Seccomp = ownProfile })
	add("own-nnp", func(c *pod.Container) { c.Seccomp, c.NoNewPrivileges, c.User = ownProfile, true, "1000" })
	add("readonly", func(c *pod.Container) { c.ReadOnlyRoot, c.OOMScoreAdj = true, 500 })
	add("twice", func(c *pod.Container) { c.Env = append(c.Env, "A=3", "HOME=/home") }) // for libcontainer's init
	add("unmasked", func(c *pod.Container) { c.ProcUnmasked, c.Cwd = true, "/new/directory" })
	add("private", func(c *pod.Container) { c.User, c.Cwd = "1000", "/private" })
	add("volumes", func(c *pod.Container) {
		c.Mounts = []pod.Mount{{Volume: "a", Path: "/a"}, {Volume: "a", Path: "/a/ro", SubPath: "b", ReadOnly: true}, {Volume: "files", Path: "/tmp/files"}}
		c.ReadOnlyRoot, c.TerminationMessagePath = true, "/a/message"
	})
	add("etc", func(c *pod.Container) { c.Mounts = []pod.Mount{{Volume: "a", Path: "/etc"}} })

	if testing.Short() { // an emulated machine takes seconds for each process: two users, both ways each
		list = slices.DeleteFunc(list, func(c pod.Container) bool {
			return !slices.Contains([]string{"plain", "nnp", "user", "user-nnp"}, c.Name)
		})
	}
	want, got := map[string][]string{}, map[string][]string{}
	for some := range slices.Chunk(list, 4) { // so that a pod starts in time on a slow machine
		maps.Copy(want, lookAtAll(t, newPlan(nil, some), nil))
		maps.Copy(got, lookAtAll(t, newPlan(nil, some), testShim()))
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

// The same holds for the containers of pods that share namespaces with the host, or among their containers.
func TestExecShimMakesWhatLibcontainerMakesInSharedNamespaces(t *testing.T) {
	testenv.NoLeaks(t)
	l := seenLayer(t)
	container := func(name string, change func(c *pod.Container)) pod.Container {
		c := shell(l, name, "")
		c.Args = []string{"seen", "calls", "stay"}
		change(&c)
		return c
	}
	list := []pod.Container{
		container("readonly", func(c *pod.Container) { c.ReadOnlyRoot = true }),
		container("user", func(c *pod.Container) {
			c.User, c.SupplementalGroups, c.NoNewPrivileges, c.OOMScoreAdj = "1000:1000", []uint32{5, 2000}, true, 1000
		}),
		container("unmasked", func(c *pod.Container) { c.ProcUnmasked, c.SeccompUnconfined = true, true }),
	}
	shapes := map[string]func(p *pod.Plan){
		"hostPID":               func(p *pod.Plan) { p.HostPID = true },
		"hostNetwork":           func(p *pod.Plan) { p.Network = pod.NetworkHost },
		"hostIPC":               func(p *pod.Plan) { p.HostIPC = true },
		"shareProcessNamespace": func(p *pod.Plan) { p.ShareProcessNamespace = true },
		"all of the host's":     func(p *pod.Plan) { p.HostPID, p.HostIPC, p.Network = true, true, pod.NetworkHost },
	}
	if testing.Short() { // an emulated machine
		list = list[:1]
		maps.DeleteFunc(shapes, func(name string, _ func(p *pod.Plan)) bool { return strings.HasPrefix(name, "host") })
	}
	for name, share := range shapes {
		t.Run(name, func(t *testing.T) {
			plan := newPlan(nil, list)
			share(plan)
			want, got := lookAtAll(t, plan, nil), lookAtAll(t, plan, testShim())
			for _, where := range slices.Sorted(maps.Keys(want)) {
				if inC := slices.Contains(got[where], keepsNodev); inC != strings.HasPrefix(where, "readonly") {
					t.Errorf("%s: the init in C has made it: %v", where, inC)
				}
				compareLines(t, where, want[where], got[where])
			}
			if len(want) != 3*len(list) {
				t.Errorf("%d processes were looked at, of %d containers", len(want), len(list))
			}
		})
	}
}

// The init in C makes the containers of a release. Its errors name the step.
func TestInitInCReportsItsSteps(t *testing.T) {
	testenv.NoLeaks(t)
	c := shell(layer(t), "a", "")
	c.Cwd = "/bin/sh"
	end := start(t, newPlan(nil, []pod.Container{c})).ended().Containers[0].State.Terminated
	if end == nil || end.ExitCode != 128 || end.Message != "change to the working directory /bin/sh: not a directory" {
		t.Errorf("%+v", end)
	}
}

// ownProfile refuses calls with errno values of its own, including some that the default profile allows.
var ownProfile = json.RawMessage(`{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
	{"names": ["mount", "keyctl"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28},
	{"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 29, "args": [{"index": 0, "value": 4660, "op": "SCMP_CMP_EQ"}]},
	{"names": ["acct", "clone"], "action": "SCMP_ACT_LOG"}]}`)

// lookAtAll runs the containers of a Plan, to which it adds volumes, and returns the attributes of their processes, by
// container and kind of process.
func lookAtAll(t *testing.T, plan *pod.Plan, by *execshim.Program) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	plan.Volumes = []pod.Volume{{Name: "a", Kind: pod.EmptyDir}, {Name: "files", Kind: pod.Files,
		Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "a", Text: "b", Mode: 0o644}}}}}}
	p := prepare(t, plan)
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
	for i := range plan.Containers {
		name := plan.Containers[i].Name
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

// The mount of a read-only root: libcontainer's init loses nodev when it makes the root read-only, the init in C does not.
const keepsNodev, losesNodev = "mount /  ro,nodev,relatime overlay ", "mount /  ro,relatime overlay "

// compareLines reports the lines in which two processes differ.
func compareLines(t *testing.T, where string, want, got []string) {
	t.Helper()
	if i := slices.Index(got, keepsNodev); i >= 0 {
		got[i] = losesNodev
	}
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

// onTerminal returns the output of a command with a terminal.
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

// CVE-2016-9962, CVE-2019-5736, CVE-2024-21626: a process in a container gets hold of nothing of podrun's
// when a command is run in the container: not its program, its descriptors, its directories, nor the right
// to trace it. One that asks for CAP_SYS_PTRACE does not get it in the user namespace of all pods:
// TestProcessesThatAreMadeCannotBeSeized.
func TestNothingIsSeenOfACommandBeforeItRuns(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	install(t, l, "spy")
	watcher := shell(l, "watched", "mkfifo /tmp/go /tmp/end; spy look </tmp/go >/tmp/seen & spy trace </tmp/go >/tmp/traced & exec 3>/tmp/go; read x </tmp/end; exec 3>&-; wait; cat /tmp/seen /tmp/traced")
	strong := watcher
	strong.Name = "strong"
	strong.Capabilities = append([]string{"CAP_SYS_PTRACE"}, testCaps...)
	user := watcher
	user.Name, user.User = "user", "1000"
	p := start(t, newPlan(nil, []pod.Container{watcher, strong, user}))
	p.running()
	for _, name := range []string{"watched", "strong", "user"} {
		for code := 1; code != 0; {
			code, _ = p.exec(name, "grep", "-q", "looking", "/tmp/seen")
		}
		for range 150 {
			if code, out := p.exec(name, "true"); code != 0 {
				t.Fatalf("%s: exit code %d: %s", name, code, out)
			}
		}
		p.exec(name, "sh", "-c", "echo >/tmp/end")
	}
	p.ended()
	for _, name := range []string{"watched", "strong", "user"} {
		said := p.log(name)
		if strings.Count(said, "looked 1\n") != 2 {
			t.Errorf("%s: nobody looked: %s", name, said)
		}
		for line := range strings.Lines(said) {
			if line != "looking\n" && line != "looked 1\n" {
				t.Errorf("from %s there is in sight: %s", name, line)
			}
		}
	}
}

// A container's program that executes /proc/self/exe through the kernel gets the exec shim, which does
// nothing without a configuration, and to which it cannot write.
func TestContainerCannotUseTheExecShim(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.WriteFile(l+"/bin/evil", []byte("#!/proc/self/exe\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	for range 20 {
		if code, out := p.exec("a", "evil"); code != 126 || out != "" {
			t.Errorf("exit code %d and %q", code, out)
		}
	}
	q := start(t, withName(newPlan(nil, []pod.Container{func() pod.Container { c := shell(l, "b", ""); c.Args = []string{"evil"}; return c }()}), "q"))
	if end := q.ended().Containers[0].State.Terminated; end == nil || end.ExitCode != 126 {
		t.Errorf("a container of it: %+v", end)
	}
}

// A container that opens the exec shim's program, through a command that is a script of /proc/self/exe,
// cannot make it unusable for others. The file is held open for writing and gets mode 0, as far as the
// kernel allows: commands, probes and restarts still work.
func TestExecShimCannotBeTakenAway(t *testing.T) {
	b, err := testProgram("execshim", "../scripts/execshim")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := execshim.NewInMemory(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]*execshim.Program{"on a file system of its own": testShim(), "in memory": memory} {
		t.Run(name, func(t *testing.T) { takeAway(t, program) })
	}
}

func takeAway(t *testing.T, program *execshim.Program) {
	testenv.NoLeaks(t)
	l := layer(t)
	install(t, l, "taker")
	if err := os.WriteFile(l+"/bin/evil", []byte("#!/proc/self/exe\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	victim := shell(l, "victim", "trap 'exit 1' TERM; sleep 1000 & wait")
	victim.Readiness = &pod.Probe{Handler: pod.Handler{Exec: []string{"test", "-e", "/tmp/ready"}}, PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: 1, SuccessThreshold: 1}
	plan := newPlan(nil, []pod.Container{shell(l, "taker", "exec taker"), victim})
	plan.RestartPolicy = pod.RestartOnFailure
	p := prepare(t, plan)
	p.by = program
	p.begin()
	p.running()
	for !strings.Contains(p.log("taker"), "taken") {
		p.exec("taker", "evil") // neither its exit code nor whether it was seen matters
	}
	for !strings.Contains(p.log("taker"), "done") {
		if code, out := p.exec("victim", "true"); code != 0 {
			t.Fatalf("a command: exit code %d: %s", code, out)
		}
	}
	if said := p.log("taker"); (strings.Count(said, "Read-only file system") == 2) != (program == testShim()) {
		t.Errorf("the attack: %q", said)
	}
	for _, c := range []string{"taker", "victim"} {
		if code, out := p.exec(c, "true"); code != 0 {
			t.Errorf("a command in %s: exit code %d: %s", c, code, out)
		}
	}
	if code, out := p.exec("victim", "touch", "/tmp/ready"); code != 0 {
		t.Fatalf("a command: exit code %d: %s", code, out)
	}
	p.until("ready", func(st pod.Status) bool { return st.Containers[1].Ready })
	p.exec("victim", "kill", "1") // its own exit code varies: it may be killed with the container
	p.until("restarted", func(st pod.Status) bool {
		c := st.Containers[1]
		return c.RestartCount == 1 && c.State.Running != nil
	})
	if code, out := p.exec("victim", "true"); code != 0 {
		t.Errorf("a command in the container's next instance: exit code %d: %s", code, out)
	}
}

// Errors before a program runs are reported with their errno, and no half-confined process is left.
func TestStartErrorsAreExact(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	for name, text := range map[string]string{"noexec": "#!/bin/sh\n", "garbage": "\x01\x02", "orphan": "#!/bin/nothing\n"} {
		if err := os.WriteFile(filepath.Join(l, "bin", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(l+"/bin/noexec", 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		cwd  string
		code int
		says string
	}{
		{[]string{"nothing"}, "", 127, `exec "nothing": executable file not found in $PATH`},
		{[]string{"/bin/nothing"}, "", 127, `exec "/bin/nothing": no such file or directory`},
		{[]string{"/etc/passwd/x"}, "", 127, `exec "/etc/passwd/x": not a directory`},
		{[]string{"/bin/noexec"}, "", 126, `exec "/bin/noexec": permission denied`},
		{[]string{"noexec"}, "", 126, `exec "noexec": permission denied`},
		{[]string{"/bin"}, "", 126, `exec "/bin": permission denied`},
		{[]string{"garbage"}, "", 126, `exec "garbage": exec format error`},
		{[]string{"orphan"}, "", 127, `exec "orphan": its interpreter does not exist: no such file or directory`},
		{[]string{"true"}, "/nothing", 127, `change to the working directory: no such file or directory`},
		{[]string{"true"}, "/etc/passwd", 127, `change to the working directory: not a directory`},
		{[]string{"true"}, "/" + strings.Repeat("x/", 3000), 125, `file name too long`},
		{[]string{""}, "", 127, `exec "": executable file not found in $PATH`},
	}
	p := start(t, newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")}))
	p.running()
	for _, test := range tests {
		code, out := p.request(&wire.ExecRequest{Container: "a", Args: test.args, Cwd: test.cwd})
		if code != test.code || !strings.Contains(out, test.says) {
			t.Errorf("command %.30q in %.10q: %d %q, want %d %q", test.args, test.cwd, code, out, test.code, test.says)
		}
		if test.cwd != "" || test.args[0] == "" {
			continue // that error is found earlier
		}
		c := shell(l, "b", "")
		c.Args = test.args
		st := start(t, withName(newPlan(nil, []pod.Container{c}), "q")).ended()
		if end := st.Containers[0].State.Terminated; end == nil || end.ExitCode != test.code || end.Reason != "StartError" || !strings.Contains(end.Message, test.says) {
			t.Errorf("container of %.30q: %+v, want %d %q", test.args, end, test.code, test.says)
		}
	}
	if code, out := p.exec("a", "sh", "-c", "ps >/tmp/processes; grep -c . /tmp/processes"); code != 0 || out != "4\n" { // sleep, sh, ps, and a heading
		t.Errorf("processes of commands that did not start are left: %s", out)
	}
}

// A container that shares its PID namespace sees each process that becomes one of another container:
// libcontainer's init, which has the rights of the user until it is confined, and the pause process. It
// cannot seize any of them. In the user namespace of all pods it does not get CAP_SYS_PTRACE. In a user
// namespace of the pod's own that and other capabilities do not help, because the memory of both processes
// belongs to the user namespace above.
func TestProcessesThatAreMadeCannotBeSeized(t *testing.T) {
	testenv.NoLeaks(t)
	for _, test := range []struct {
		name          string
		strong, apart bool
		enters        string // the container whose commands it sees
		share         func(plan *pod.Plan)
	}{
		{"shared", false, false, "victim", func(p *pod.Plan) { p.ShareProcessNamespace = true }},
		{"shared, asked for", true, false, "victim", func(p *pod.Plan) { p.ShareProcessNamespace = true }},
		{"its own, asked for", true, false, "attacker", func(*pod.Plan) {}},
		{"shared, apart", true, true, "victim", func(p *pod.Plan) { p.ShareProcessNamespace = true }},
		{"its own, apart", true, true, "attacker", func(*pod.Plan) {}},
		{"shared, users of its own", true, true, "victim", func(p *pod.Plan) {
			p.ShareProcessNamespace, p.Users = true, &pod.IDRange{First: 40960, Count: 4096}
		}},
		{"host's, apart", true, true, "victim", func(p *pod.Plan) { p.HostPID = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, []byte("good"), 0o644); err != nil {
				t.Fatal(err)
			}
			l := layer(t)
			install(t, l, "seize")
			attacker := shell(l, "attacker", "mkfifo /tmp/go /tmp/end; seize "+file+" </tmp/go >/tmp/seen & exec 3>/tmp/go; read x </tmp/end; exec 3>&-; wait; exec sleep 1000")
			attacker.Capabilities = slices.Clone(testCaps)
			if test.apart {
				attacker.Capabilities, attacker.SeccompUnconfined = container.CapabilityNames(1<<41-1), true
			} else if test.strong {
				attacker.Capabilities = append(attacker.Capabilities, "CAP_SYS_PTRACE")
			}
			plan := newPlan(nil, []pod.Container{shell(l, "victim", "exec sleep 1000"), attacker})
			plan.OwnUserNS, plan.GraceSeconds = test.apart, 0
			test.share(plan)
			w := startWhole(t, plan)
			w.until(running)
			for code := 1; code != 0; {
				code, _ = w.ask("attacker", "grep", "-q", "looking", "/tmp/seen")
			}
			for range 3 * *torture {
				w.ask(test.enters, "true")
				onTerminal(t, &testPod{t: t, place: w.place}, test.enters, "true")
			}
			_, said := w.ask("attacker", "sh", "-c", "echo >/tmp/end; until grep -q looked /tmp/seen; do usleep 1000; done; cat /tmp/seen")
			if said != "looking\nlooked 1\n" {
				t.Errorf("the attacker gets\n%s", said)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "good" {
				t.Errorf("the host's file has %q, %v", b, err)
			}
		})
	}
}
