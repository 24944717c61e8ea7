package vm

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackages runs packages' own tests in each kind where a user may start podrun, with its
// limits, cgroups and systemd. Tests that need only a kernel, as in make test, run in make
// torture-vm.
func TestPackages(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	m.script(t, "put", stage(t, "packages"), "/home/dev")
	m.must(t, "session", "sh", "-c", "cp -r /home/dev/packages/. "+home+" && rm -r /home/dev/packages")
	for _, dir := range []string{"cgroups", "internal/delegation", "internal/host", "internal/nsprobe"} {
		t.Run("scope/"+dir, func(t *testing.T) { m.packageTest(t, "scope", dir) })
	}
	// In a service only the place of a pod's cgroup differs.
	for _, dir := range []string{"cgroups", "internal/delegation"} {
		t.Run("service/"+dir, func(t *testing.T) { m.packageTest(t, "service", dir) })
	}
	// Whole pods and the built binary, which limits, cgroups and systemd affect.
	pods := []string{"-test.short", "-test.run", "Limits|TestPodOf|KilledPod|ExecShimMakes|ExecProbesDuring"}
	whole := "evicted|killed"
	if torture() { // the fork bomb is of up to 4096 processes; the cgroup tests' has 40
		pods = []string{"-test.run", "Limits|TestPodOf|KilledPod|ExecShimMakes|ExecProbesDuring|ForkBomb|StartErrors"}
		whole += "|down|exhaustion|hostile|sandbox|top|up_one"
		t.Run("scope/test/examples", func(t *testing.T) {
			m.packageTest(t, "scope", "test/examples", "-test.run", `TestExamples/^(limits|shared-pid|web)\.yaml$`)
		})
	}
	t.Run("scope/runner", func(t *testing.T) { m.packageTest(t, "scope", "runner", pods...) })
	t.Run("scope/test/script", func(t *testing.T) {
		m.packageTest(t, "scope", "test/script", "-test.run", "TestScripts/^("+whole+")$")
	})
	// Beside a shell the pod's cgroup is made below the nearest ancestor without processes.
	t.Run("shell/cgroups", func(t *testing.T) {
		m.must(t, "scope", "sh", "-c", "PODRUN_TEST_VM=1 "+home+"/cgroups/cgroups.test; code=$?; exit $code")
	})
	t.Run("session/cgroups", func(t *testing.T) {
		// A login has no delegated cgroup, and the test must report that instead of passing.
		out, err := m.packageCommand("session", "cgroups", "-test.run", "TestPodHasItsValues").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is not delegated to this user") {
			t.Errorf("in a login: %v\n%s", err, out)
		}
	})
	m.nothingLeft(t)
}

func (m *machine) packageCommand(kind, dir string, args ...string) *exec.Cmd {
	command := append([]string{"env", "-C", home + "/" + dir, "PODRUN_TEST_VM=1",
		"./" + filepath.Base(dir) + ".test", "-test.timeout", "15m"}, args...)
	return m.command(kind, command...)
}

func (m *machine) packageTest(t *testing.T, kind, dir string, args ...string) {
	t.Helper()
	if out, err := m.packageCommand(kind, dir, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
