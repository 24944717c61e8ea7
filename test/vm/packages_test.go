package vm

import (
	"os/exec"
	"strings"
	"testing"
)

// Packages' own tests, in each place where a user may start podrun.
func TestPackages(t *testing.T) {
	needMachines(t)
	m := boot(t, "debian")
	for _, place := range []string{"scope", "service"} {
		for _, name := range []string{"cgroups", "delegation", "host"} {
			t.Run(place+"/"+name, func(t *testing.T) { m.packageTest(t, place, name) })
		}
	}
	// Whole pods: here their limits are real.
	t.Run("scope/runner", func(t *testing.T) {
		m.packageTest(t, "scope", "runner", "-test.run", "Limits|ForkBomb|TestPodOf|Killed")
	})
	// Beside a shell the pod's cgroup goes below the nearest ancestor without processes.
	t.Run("shell/cgroups", func(t *testing.T) {
		m.must(t, "scope", "sh", "-c", "PODRUN_TEST_VM=1 "+home+"/cgroups.test; code=$?; exit $code")
	})
	t.Run("session/cgroups", func(t *testing.T) {
		// A login is not delegated, and the test must say so instead of passing.
		out, err := m.packageCommand("session", "cgroups", "-test.run", "TestPodHasItsValues").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is not delegated to this user") {
			t.Errorf("in a login: %v\n%s", err, out)
		}
	})
	m.nothingLeft(t)
}

func (m *machine) packageCommand(place, name string, args ...string) *exec.Cmd {
	words := append([]string{"env", "-C", "/home/dev", "PODRUN_TEST_VM=1", home + "/" + name + ".test", "-test.timeout", "10m"}, args...)
	return m.command(place, words...)
}

func (m *machine) packageTest(t *testing.T, place, name string, args ...string) {
	t.Helper()
	if out, err := m.packageCommand(place, name, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
