package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bootSetup, run by dev, makes the image, and a unit that records the boot when the units that are wanted with it are
// active: seconds from the start of the user's manager, processor seconds and megabytes read by all of its units.
const bootSetup = `set -e
bash podrun/scripts/example-rootfs rootfs.tar
podman import --quiet --change ENV=PATH=/bin rootfs.tar localhost/podrun-example:1
cat >.config/systemd/user/booted.service <<U
[Unit]
After=$(seq -s ' ' -f 'podrun@p%%g.service' %[1]d) $(for i in $(seq %[1]d); do echo -n " podman-kube@$(systemd-escape "$PWD/.config/podrun/pods/p$i.yaml").service"; done)
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash $PWD/record %%h/booted
[Install]
WantedBy=default.target
U
cat >record <<'S'
c=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
awk -v begin="$(systemctl --user show -P UserspaceTimestampMonotonic)" '
	FILENAME == "/proc/uptime" { took = $1 - begin / 1e6 }
	$1 == "usage_usec" { cpu = $2 / 1e6 }
	FILENAME ~ /io.stat/ { for (i = 2; i <= NF; i++) if (sub("rbytes=", "", $i)) read += $i / 1e6 }
	END { print took, cpu, read }' /proc/uptime $c/cpu.stat $c/io.stat >$1.new
mv $1.new $1
S
mkdir -p .config/systemd/user/podman-kube@.service.d
printf '[Service]\nTimeoutStartSec=infinity\n' >.config/systemd/user/podman-kube@.service.d/slow.conf
systemctl --user daemon-reload
systemctl --user -q enable booted
`

// peerNetwork, run by dev, gives podman's units pasta for their network: a podman that is newer than the machine's netavark
// cannot make podman's own.
const peerNetwork = `set -e
printf '[Service]\nExecStart=\nExecStart=/usr/bin/podman kube play --replace --service-container=true --network pasta %%%%I\n' \
	>.config/systemd/user/podman-kube@.service.d/network.conf
systemctl --user daemon-reload
`

// bootUnits prints the names of an engine's n units.
var bootUnits = map[string]string{
	"podrun": `seq -f podrun@p%%g.service %d`,
	"podman": `for i in $(seq %d); do echo "podman-kube@$(systemd-escape "$PWD/.config/podrun/pods/p$i.yaml").service"; done`,
}

// TestBootBesidePodman boots a machine with twenty units of podrun, and then of podman, and logs what the boot costs
// with each. PODMAN and RUNTIME name programs that take the place of the machine's podman and crun.
func TestBootBesidePodman(t *testing.T) {
	needMachines(t)
	t.Parallel()
	const n = 20
	m := boot(t, "debian", "VM_MEM=3072") // with 1 GiB podman's units run out of memory
	for env, program := range map[string]string{"PODMAN": "/usr/bin/podman", "RUNTIME": "/usr/bin/crun"} {
		if file := os.Getenv(env); file != "" {
			m.script(t, "put", file, "/home/dev")
			m.must(t, "root", "install", "-m", "755", "/home/dev/"+filepath.Base(file), program)
		}
	}
	dev := func(format string, args ...any) string {
		t.Helper()
		return strings.TrimSpace(m.must(t, "session", "sh", "-c", fmt.Sprintf(format, args...)))
	}
	dev("%s", podUnits("localhost/podrun-example:1", n))
	dev(bootSetup, n)
	if os.Getenv("PODMAN") != "" {
		dev(peerNetwork)
	}
	var costs [2][3]float64
	for i, engine := range []string{"podrun", "podman"} {
		units := strings.Join(strings.Fields(dev(bootUnits[engine], n)), "' '")
		dev("rm -f booted; systemctl --user -q enable '%s'; sync", units)
		m.script(t, "reboot")
		m.must(t, "session", "timeout", "1800", "sh", "-c", "until [ -s booted ]; do sleep 2; done") // a look from outside takes the machine's processor
		if active := dev("systemctl --user show -P ActiveState '%s' | grep -c ^active || true", units); active != fmt.Sprint(n) {
			t.Errorf("%s of the units of %s are active: %s", active, engine, m.must(t, "root", "journalctl", "-q", "-b", "--no-pager", "-n", "50"))
		}
		if _, err := fmt.Sscan(dev("cat booted"), &costs[i][0], &costs[i][1], &costs[i][2]); err != nil {
			t.Fatal(err)
		}
		dev("systemctl --user -q disable --now '%s'", units)
	}
	for i, what := range []string{"seconds", "processor seconds", "megabytes read"} {
		t.Logf("%s until %d pods run after a boot: podrun %.1f, podman %.1f, 1/%.1f", what, n, costs[0][i], costs[1][i], costs[1][i]/costs[0][i])
	}
}
