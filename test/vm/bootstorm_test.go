package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// stormSetup, run by root on a machine with the image in its own registry, delays the registry's
// start until a minute after dev's units.
const stormSetup = `set -e
cat >/etc/registry.yml <<Y
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /srv/registry}}
http: {addr: "127.0.0.1:5100"}
Y
cat >/etc/systemd/system/registry.service <<Y
[Unit]
Wants=user@1000.service
After=user@1000.service
[Service]
Environment=OTEL_TRACES_EXPORTER=none
TimeoutStartSec=300
ExecStartPre=/bin/sh -c 'test ! -e /etc/late || sleep 60'
ExecStart=/usr/bin/docker-registry serve /etc/registry.yml
[Install]
WantedBy=multi-user.target
Y
systemctl daemon-reload
systemctl -q enable --now registry.service
touch /etc/late
`

// stormUnits, run by dev, fills the registry and enables n units of podUnits.
const stormUnits = `set -e
bash podrun/scripts/example-rootfs rootfs.tar
podman import -q rootfs.tar 127.0.0.1:5100/app:1
until podman push -q --tls-verify=false 127.0.0.1:5100/app:1; do sleep 1; done
podman system reset --force
mkdir -p .config/containers
printf '[[registry]]\nlocation = "127.0.0.1:5100"\ninsecure = true\n' >.config/containers/registries.conf
systemctl --user -q enable $(seq -f podrun@p%%g %d)
`

// podUnits returns a script for dev that makes the template unit and n manifests for it.
func podUnits(image string, n int) string {
	return fmt.Sprintf(`set -e
mkdir -p .config/podrun/pods .config/systemd/user
podrun/bin/podrun systemd show --template >.config/systemd/user/podrun@.service
for i in $(seq %d); do
	cat >.config/podrun/pods/p$i.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: p$i}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: app, image: %q, imagePullPolicy: IfNotPresent, command: [/bin/sleep, infinity], resources: {limits: {memory: 16Mi}}}
Y
done
systemctl --user daemon-reload
`, n, image)
}

// stormState prints how many units are in which state, and the number of restarts.
const stormState = `for i in $(seq %d); do systemctl --user show -p ActiveState,NRestarts podrun@p$i | tr '\n' ' '; echo; done | sort | uniq -c`

// stormLate prints the units that did not start before the registry.
const stormLate = `there=$(systemctl show -P ActiveEnterTimestampMonotonic registry)
for i in $(seq %d); do
	[ $there -gt $(systemctl --user show -P InactiveExitTimestampMonotonic podrun@p$i) ] || echo p$i
done`

// TestBootStorm: many units start with a machine of two processors and 1 GiB, and its registry is
// unreachable for a minute: ten units, or thirty in make torture-vm. All become ready at the first
// try; make torture-vm repeats that after an orderly reboot.
func TestBootStorm(t *testing.T) {
	needMachines(t)
	t.Parallel()
	n := 10
	if torture() {
		n = 30
	}
	m := boot(t, "debian")
	m.must(t, "root", "sh", "-c", stormSetup)
	m.must(t, "session", "sh", "-c", podUnits("127.0.0.1:5100/app:1", n))
	m.must(t, "session", "sh", "-c", fmt.Sprintf(stormUnits, n))
	m.must(t, "root", "sync")
	m.cut(t)
	m.allReady(t, n)
	if late := m.must(t, "session", "sh", "-c", fmt.Sprintf(stormLate, n)); late != "" {
		t.Errorf("the registry was there before these units were started: %s", late)
	}
	if torture() {
		m.script(t, "reboot")
		m.allReady(t, n)
	}
}

// allReady waits until all units are ready, and checks that none was restarted.
func (m *machine) allReady(t *testing.T, n int) {
	t.Helper()
	start := time.Now()
	var state []string
	for range 4 { // emulated, and beside other machines
		if scriptcmd.Poll(func() bool {
			state = strings.Fields(m.must(t, "session", "sh", "-c", fmt.Sprintf(stormState, n)))
			return strings.Join(state, " ") == fmt.Sprintf("%d ActiveState=active NRestarts=0", n) ||
				strings.Join(state, " ") == fmt.Sprintf("%d NRestarts=0 ActiveState=active", n)
		}) {
			t.Logf("%d units are ready after %.0f s", n, time.Since(start).Seconds())
			return
		}
	}
	t.Errorf("not all units are ready, or some were restarted: %v\n%s", state, m.must(t, "root", "journalctl", "-q", "-b", "--no-pager", "-n", "100"))
}
