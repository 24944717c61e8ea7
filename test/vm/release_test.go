package vm

import "testing"

// TestRelease installs, upgrades, downgrades and purges the Debian package on a machine of each architecture.
func TestRelease(t *testing.T) {
	needMachines(t)
	t.Parallel()
	for _, name := range []string{"debian", "arm64"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := boot(t, name)
			m.script(t, "put", stage(t, "release-"+m.arch()), "/home/dev")
			m.must(t, "root", "mv", "/home/dev/release-"+m.arch(), "/home/dev/release")
			m.run(t, scripts(t, []string{"release"}))
		})
	}
}
