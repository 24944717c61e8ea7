package vm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// torture reports whether this is make torture-vm.
func torture() bool { return os.Getenv(tortureEnv) != "" }

// rounds returns how often the tests of this file repeat: few times, or as often as PODRUN_TORTURE
// requests (make torture-vm).
func rounds(t *testing.T, few int) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(tortureEnv))
	if err != nil {
		return few
	}
	return n
}

const unitPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 10
  initContainers:
  - {name: prep, image: "localhost/podrun-example:1", command: [sh, -c, "sleep 1"]}
  containers:
  - {name: app, image: "localhost/podrun-example:1", command: [sh, -c, 'trap "exit 0" TERM; while true; do sleep 3600 & wait $!; done']}
  - {name: side, image: "localhost/podrun-example:1", command: [sh, -c, 'trap "exit 0" TERM; while true; do sleep 3600 & wait $!; done']}
`

// installWeb installs the pod web as a running unit.
func (m *machine) installWeb(t *testing.T) {
	t.Helper()
	m.must(t, "session", "sh", "-c", fmt.Sprintf("printf %%s %s >web.yaml && podrun/bin/podrun systemd install --now web.yaml", quote(unitPod)))
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// show returns a property of the unit.
func (m *machine) show(t *testing.T, property string) string {
	t.Helper()
	return strings.TrimSpace(m.must(t, "session", "systemctl", "--user", "show", "-P", property, "podrun@web"))
}

// ready waits until the pod is ready and reports whether it did. Its restart count is ignored,
// because a pod keeps it over a power cut.
func (m *machine) ready(t *testing.T) bool {
	t.Helper()
	return scriptcmd.Poll(func() bool {
		return m.show(t, "ActiveState") == "active" && strings.HasPrefix(m.show(t, "StatusText"), "web: 2/2 Running")
	})
}

// TestUnits runs the cases of a pod as a unit, on one machine and in one unit. make torture-vm
// repeats each often, and the power cut, which units/systemd.txtar runs once.
func TestUnits(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	m.installWeb(t)
	for _, what := range []struct {
		name string
		do   func(*machine, *testing.T)
	}{{"stops", (*machine).unitStops}, {"crashes", (*machine).unitCrashes}, {"power cuts", (*machine).unitPowerCuts}} {
		t.Run(what.name, func(t *testing.T) {
			m.must(t, "session", "systemctl", "--user", "start", "podrun@web") // whatever state the previous case has left
			what.do(m, t)
		})
	}
	m.must(t, "session", home+"/bin/podrun", "systemd", "uninstall", "web")
	m.nothingLeft(t)
}

// unitStops: a stop leaves nothing, each time.
func (m *machine) unitStops(t *testing.T) {
	for range rounds(t, 3) {
		m.must(t, "session", "systemctl", "--user", "stop", "podrun@web")
		if result := m.show(t, "Result"); result != "success" {
			t.Errorf("the unit ended with %s", result)
		}
		if left := m.must(t, "root", home+"/left", "--running"); left != "" {
			t.Errorf("left behind:\n%s", left)
		}
		m.must(t, "session", "systemctl", "--user", "start", "podrun@web")
	}
}

// unitCrashes: killing the unit's main process does not affect the containers.
func (m *machine) unitCrashes(t *testing.T) {
	status := func() string { return m.must(t, "session", home+"/bin/podrun", "get", "web", "-o", "yaml") }
	before := status()
	for i := range rounds(t, 3) {
		main := m.show(t, "MainPID")
		m.must(t, "session", "kill", "-KILL", main)
		back := scriptcmd.Poll(func() bool {
			now := m.show(t, "MainPID")
			return now != "0" && now != main && m.show(t, "ActiveState") == "active"
		})
		if now := status(); !back || now != before {
			t.Fatalf("kill %d: back: %v\n%s", i+1, back, now)
		}
	}
}

// unitPowerCuts: after a power cut at any moment the pod starts by itself, also right after
// install.
func (m *machine) unitPowerCuts(t *testing.T) {
	m.must(t, "session", home+"/bin/podrun", "systemd", "uninstall", "web")
	m.nothingLeft(t)
	m.installWeb(t)
	moments := []string{"mid-up", "mid-down"}
	if torture() {
		moments = append(moments, "steady")
	}
	for i := range rounds(t, 1) {
		for _, moment := range moments {
			switch moment {
			case "mid-up":
				m.cut(t) // the unit starts with the machine
				m.must(t, "session", "sleep", fmt.Sprint(5*rand.Float64()))
			case "mid-down":
				stop := m.command("session", "systemctl", "--user", "stop", "podrun@web")
				if err := stop.Start(); err != nil {
					t.Fatal(err)
				}
				m.must(t, "session", "sleep", fmt.Sprint(1.5*rand.Float64()))
				defer stop.Wait()
			}
			start := time.Now()
			m.cut(t)
			if !m.ready(t) {
				t.Fatalf("cut %d, %s: the pod does not come back, but is %q\n%s", i+1, moment, m.show(t, "StatusText"), m.must(t, "root", "journalctl", "-q", "-b", "--no-pager", "-n", "50"))
			}
			t.Logf("cut %d, %s: back after %.0f s", i+1, moment, time.Since(start).Seconds())
		}
	}
}
