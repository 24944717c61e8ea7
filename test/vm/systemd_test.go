package vm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/testwords"
)

// torture says whether this is make torture-vm.
func torture() bool { return os.Getenv(tortureEnv) != "" }

// rounds is how often the tests of this file do what they do: few times, or as often as
// PODRUN_TORTURE says (make torture-vm).
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

// withUnit boots a machine that runs the pod web as a unit.
func withUnit(t *testing.T) *machine {
	t.Helper()
	needMachines(t)
	m := boot(t, "debian")
	m.must(t, "session", "sh", "-c", fmt.Sprintf("printf %%s %s >web.yaml && podrun/bin/podrun systemd install --now web.yaml", quote(unitPod)))
	return m
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// show is a property of the unit.
func (m *machine) show(t *testing.T, property string) string {
	t.Helper()
	return strings.TrimSpace(m.must(t, "session", "systemctl", "--user", "show", "-P", property, "podrun@web"))
}

// ready waits until the pod is, restarted or not: one that goes on after a power cut has its count.
func (m *machine) ready(t *testing.T) bool {
	t.Helper()
	return testwords.Within(func() bool {
		return m.show(t, "ActiveState") == "active" && strings.HasPrefix(m.show(t, "StatusText"), "web: 2/2 Running")
	})
}

// TestUnitStops: a stop leaves nothing, each time.
func TestUnitStops(t *testing.T) {
	t.Parallel()
	m := withUnit(t)
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
	m.must(t, "session", home+"/bin/podrun", "systemd", "uninstall", "web")
	m.nothingLeft(t)
}

// TestUnitCrashes: the containers do not notice that the unit's main process is killed.
func TestUnitCrashes(t *testing.T) {
	t.Parallel()
	m := withUnit(t)
	status := func() string { return m.must(t, "session", home+"/bin/podrun", "get", "web", "-o", "yaml") }
	before := status()
	for i := range rounds(t, 3) {
		main := m.show(t, "MainPID")
		m.must(t, "session", "kill", "-KILL", main)
		back := testwords.Within(func() bool {
			now := m.show(t, "MainPID")
			return now != "0" && now != main && m.show(t, "ActiveState") == "active"
		})
		if now := status(); !back || now != before {
			t.Fatalf("kill %d: back: %v\n%s", i+1, back, now)
		}
	}
	m.must(t, "session", home+"/bin/podrun", "systemd", "uninstall", "web")
	m.nothingLeft(t)
}

// TestUnitPowerCuts: whenever the power goes, the pod comes back by itself.
func TestUnitPowerCuts(t *testing.T) {
	t.Parallel()
	m := withUnit(t)
	for i := range rounds(t, 1) {
		for _, moment := range []string{"mid-up", "steady", "mid-down"} {
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
	m.must(t, "session", home+"/bin/podrun", "systemd", "uninstall", "web")
	m.nothingLeft(t)
}
