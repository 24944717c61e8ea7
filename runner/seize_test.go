package runner

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// A container that shares its PID namespace with others sees each process that becomes
// theirs: libcontainer's init, which has the rights of the user until it is confined, and the
// pause process. It gets hold of none: CAP_SYS_PTRACE it does not get in the user namespace of
// all pods, and in the pod's own it is of no use, because the memory of both belongs to the
// user namespace above.
func TestProcessesThatAreMadeCannotBeSeized(t *testing.T) {
	testenv.NoLeaks(t)
	for _, test := range []struct {
		name          string
		strong, apart bool
		lay           func(plan *pod.Plan, attackers []pod.Container)
	}{
		{"shared", false, false, inShared},
		{"shared, asked for", true, false, inShared},
		{"target, asked for", true, false, inTarget},
		{"shared, apart", true, true, inShared},
		{"target, apart", true, true, inTarget},
		{"host's, apart", true, true, inHosts},
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
			if test.strong {
				attacker.Capabilities = append(attacker.Capabilities, "CAP_SYS_PTRACE")
			}
			plan := newPlan(nil, []pod.Container{shell(l, "victim", "exec sleep 1000")})
			plan.Apart, plan.GraceSeconds = test.apart, 0
			test.lay(plan, []pod.Container{attacker})
			w := startWhole(t, plan)
			w.until(running)
			for code := 1; code != 0; {
				code, _ = w.ask("attacker", "grep", "-q", "looking", "/tmp/seen")
			}
			for range 10 * *torture {
				w.ask("victim", "true")
				onTerminal(t, &testPod{t: t, place: w.place}, "victim", "true")
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

func inShared(plan *pod.Plan, attackers []pod.Container) {
	plan.ShareProcessNamespace = true
	plan.Containers = append(plan.Containers, attackers...)
}

func inTarget(plan *pod.Plan, attackers []pod.Container) {
	for _, c := range attackers {
		c.Target, c.RestartPolicy = "victim", pod.RestartNever
		plan.Ephemeral = append(plan.Ephemeral, c)
	}
}

func inHosts(plan *pod.Plan, attackers []pod.Container) {
	plan.HostPID = true
	plan.Containers = append(plan.Containers, attackers...)
}
