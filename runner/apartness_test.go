package runner

import (
	"os"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// ipcScript leaves one of each of what a pod's containers share in memory, and says what
// is there.
const ipcScript = "ls /dev/shm; ls /dev/mqueue; touch /dev/shm/segment /dev/mqueue/queue; echo made"

// S23: a pod's shared memory and message queues are all its containers', no other pod's,
// and end with the pod (CVE-2024-3056); and no signal reaches another pod, or a sibling
// whose processes are not shared.
func TestPodsReachNoOtherPod(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_DOZE_AFTER", "0") // another supervisor is one that was killed
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
	p := startWhole(t, plan)
	other := startWhole(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 1000")}), "q"))
	for _, w := range []wholePod{p, other} { // who cleans up waits for all processes
		defer w.removeBeside()
	}
	p.until(running)
	other.until(running)
	const empty = "made\n"
	if _, out := p.ask("a", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("at first there is %q", out)
	}
	if _, out := p.ask("b", "/bin/sh", "-c", ipcScript); out != "segment\nqueue\nmade\n" {
		t.Errorf("a sibling sees %q", out)
	}
	if _, out := other.ask("c", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("another pod sees %q", out)
	}
	supervisor, keeper := p.processes()
	for _, from := range []struct {
		w wholePod
		c string
	}{{other, "c"}, {p, "b"}} {
		from.w.ask(from.c, "/bin/sh", "-c", "kill -9 -1")
		if code, _ := p.ask("a", "true"); code != 0 {
			t.Errorf("%s has killed a sibling or a stranger", from.c)
		}
	}
	st, err := p.place.Status()
	if err != nil || !running(st) || st.Containers[0].RestartCount+st.Containers[1].RestartCount != 0 {
		t.Errorf("after signals to everybody: %+v, %v", st, err)
	}
	if s, k := p.processes(); s != supervisor || k != keeper {
		t.Errorf("supervisor and keeper were %d and %d, and are %d and %d", supervisor, keeper, s, k)
	}

	p.removeBeside()
	again := startWhole(t, plan)
	defer again.removeBeside()
	again.until(running)
	if _, out := again.ask("a", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("after the pod's end there is still %q", out)
	}
}

// S23: where a pod's containers share their processes, a user without rights over another
// one's processes sees that they are there, and gets no memory, file, root, environment or
// signal of theirs; root of the pod does, as in Kubernetes.
func TestSharedProcessesAreTheirUsers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	user := shell(l, "user", "exec sleep 2222")
	user.User, user.Capabilities = "1000", nil
	victim := shell(l, "victim", "exec sleep 1111")
	victim.Env = append(victim.Env, "PASSWORD=s3cr3t")
	plan := newPlan(nil, []pod.Container{victim, user, shell(l, "root", "exec sleep 3333")})
	plan.ShareProcessNamespace = true
	p := start(t, plan)
	p.running()
	const script = `while test -z "$v"; do
for d in /proc/[0-9]*; do case "$(tr '\0' ' ' <$d/cmdline)" in "sleep 1111 ") v=$d;; esac; done; done 2>/dev/null
{ grep -q s3cr3t $v/environ && echo environ; test -e $v/root/proc && echo root; test -e $v/fd/0 && echo fd
dd if=$v/mem bs=1 count=0 && echo mem; kill -0 ${v#/proc/} && echo signal; } 2>/dev/null; echo end`
	mem := "mem\n"
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && scope[0] != '0' {
		mem = "" // which is a debugger's alone there
	}
	for c, want := range map[string]string{"user": "end\n", "root": "environ\nroot\nfd\n" + mem + "signal\nend\n"} {
		if _, out := p.exec(c, "/bin/sh", "-c", script); out != want {
			t.Errorf("%s: %q, want %q", c, out, want)
		}
	}
}
