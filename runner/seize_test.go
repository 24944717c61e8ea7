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
// all pods, and in the pod's own it is of no use, nor is any other, because the memory of both
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
				attacker.Capabilities, attacker.SeccompUnconfined = capabilityNames(1<<41-1), true
			} else if test.strong {
				attacker.Capabilities = append(attacker.Capabilities, "CAP_SYS_PTRACE")
			}
			plan := newPlan(nil, []pod.Container{shell(l, "victim", "exec sleep 1000"), attacker})
			plan.Apart, plan.GraceSeconds = test.apart, 0
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
