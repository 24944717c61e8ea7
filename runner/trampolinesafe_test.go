package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/stage/trampoline"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/internal/wire"
	"github.com/podrun/podrun/pod"
)

// CVE-2016-9962, CVE-2019-5736, CVE-2024-21626: whoever watches from within a container
// gets nothing of podrun's when a command is run in it: not its program, its descriptors,
// its directories, nor the right to trace it. One that asks for CAP_SYS_PTRACE does not get it
// in the user namespace of all pods: TestProcessesThatAreMadeCannotBeSeized.
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

// A container's program that has the kernel execute /proc/self/exe gets the trampoline,
// which does nothing without an order, and which nobody can write to.
func TestTheTrampolineIsNobodysTool(t *testing.T) {
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

// A container that comes by the trampoline's program, by a command that is a script of
// /proc/self/exe, cannot take it away from others: with the file held open to be written to, and
// its mode 0, as far as the kernel lets it, commands, probes and restarts go on.
func TestTheTrampolineCannotBeTakenAway(t *testing.T) {
	b, err := testProgram("trampoline", "../scripts/trampoline")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := trampoline.InMemory(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]*trampoline.Program{"on a file system of its own": testTrampoline(), "in memory": memory} {
		t.Run(name, func(t *testing.T) { takeAway(t, program) })
	}
}

func takeAway(t *testing.T, program *trampoline.Program) {
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
		p.exec("taker", "evil") // which code it has does not matter, nor whether it was seen
	}
	for !strings.Contains(p.log("taker"), "done") {
		if code, out := p.exec("victim", "true"); code != 0 {
			t.Fatalf("a command: exit code %d: %s", code, out)
		}
	}
	if said := p.log("taker"); (strings.Count(said, "Read-only file system") == 2) != (program == testTrampoline()) {
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
	p.exec("victim", "kill", "1") // whose own exit code is not sure: it may end with the container
	p.until("restarted", func(st pod.Status) bool {
		c := st.Containers[1]
		return c.RestartCount == 1 && c.State.Running != nil
	})
	if code, out := p.exec("victim", "true"); code != 0 {
		t.Errorf("a command in the container's next instance: exit code %d: %s", code, out)
	}
}

// What fails before a program runs is told, with its errno; nothing half-confined is left.
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
		{[]string{"orphan"}, "", 127, `exec "orphan": what interprets it is not there: no such file or directory`},
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
			continue // that is found out before
		}
		c := shell(l, "b", "")
		c.Args = test.args
		st := start(t, withName(newPlan(nil, []pod.Container{c}), "q")).ended()
		if end := st.Containers[0].State.Terminated; end == nil || end.ExitCode != test.code || end.Reason != "StartError" || !strings.Contains(end.Message, test.says) {
			t.Errorf("container of %.30q: %+v, want %d %q", test.args, end, test.code, test.says)
		}
	}
	if code, out := p.exec("a", "sh", "-c", "ps | grep -c ."); code != 0 || out != "5\n" { // sleep, sh, ps, grep, and a heading
		t.Errorf("processes of commands that did not start are left: %s", out)
	}
}
