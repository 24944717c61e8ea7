package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// peerSetup, run by dev, makes units of the same pod for podrun and for podman; Debian ships
// podman's template.
const peerSetup = `set -e
bash podrun/scripts/example-rootfs rootfs.tar
podman import --quiet --change ENV=PATH=/bin rootfs.tar localhost/podrun-example:1
for engine in ours peer; do
	cat >$engine.yaml <<Y
apiVersion: v1
kind: Pod
metadata: {name: $engine}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 10
  containers:
  - {name: app, image: "localhost/podrun-example:1", imagePullPolicy: Never, command: [sh, -c, 'trap "exit 0" TERM; while true; do sleep 3600 & wait $!; done']}
Y
	sed 's/name: '$engine'/name: hog/; s/Always/Never/; s/command.*/command: [tail, \/dev\/zero], resources: {limits: {memory: 16Mi}}}/' $engine.yaml >hog-$engine.yaml
done
podrun/bin/podrun systemd install ours.yaml
systemctl --user enable -q "podman-kube@$(systemd-escape "$PWD/peer.yaml")"
systemctl --user start --no-block podrun@ours "podman-kube@$(systemd-escape "$PWD/peer.yaml")"
`

// An engine is one side of the comparison on a real host.
type engine struct {
	name, unit string
	running    string // prints how many of its containers run
	hog        string // runs a container into its limit, prints reason or code, removes it
}

func engines() []engine {
	return []engine{
		{"podrun", "podrun@ours", "podrun/bin/podrun ps | grep -c '1/1 *Running'",
			"podrun/bin/podrun up hog-ours.yaml >/dev/null 2>&1; podrun/bin/podrun get pod hog -o yaml | sed -n 's/.*reason: OOMKilled/OOMKilled/p'; podrun/bin/podrun down hog >/dev/null"},
		{"podman", `podman-kube@$(systemd-escape $PWD/peer.yaml)`, "podman ps -q --filter name=peer-app | grep -c .",
			"podman kube play hog-peer.yaml >/dev/null 2>&1; podman wait hog-app >/dev/null; podman inspect hog-app --format '{{if .State.OOMKilled}}OOMKilled{{end}}'; podman kube down hog-peer.yaml >/dev/null"},
	}
}

// TestBesidePodman compares the same pod in podrun and podman when it is out of memory, when it is
// stopped, and after a power cut. podrun's results are checked; podman's are only logged.
func TestBesidePodman(t *testing.T) {
	needMachines(t)
	t.Parallel()
	m := boot(t, "debian")
	dev := func(line string, args ...any) string {
		return strings.TrimSpace(m.must(t, "session", "sh", "-c", fmt.Sprintf(line, args...)))
	}
	dev(peerSetup)
	for _, e := range engines() {
		runs := func() bool { return dev("%s || true", e.running) == "1" }
		expect := func(ok bool, format string, args ...any) {
			t.Helper()
			if text := fmt.Sprintf(format, args...); ok || e.name != "podrun" {
				t.Logf("%s: %s", e.name, text)
			} else {
				t.Errorf("%s: %s", e.name, text)
			}
		}
		if !scriptcmd.Poll(runs) {
			expect(false, "the unit does not start: %s", dev("systemctl --user status %s || true", e.unit))
			continue
		}
		n := rounds(t, 1)
		reported := 0
		for range n {
			if dev("%s", e.hog) == "OOMKilled" {
				reported++
			}
		}
		expect(reported == n, "%d of %d containers out of memory report it", reported, n)
		stopped, clean, took := 0, 0, time.Duration(0)
		for range n {
			start := time.Now()
			dev("systemctl --user stop %s", e.unit)
			took += time.Since(start)
			if dev("systemctl --user show -P Result %s", e.unit) == "success" {
				stopped++
			}
			if !runs() {
				clean++
			}
			dev("systemctl --user start %s", e.unit)
			scriptcmd.Poll(runs)
		}
		expect(stopped == n && clean == n, "%d of %d stops succeed, %d leave no container, %.1f s each", stopped, n, clean, took.Seconds()/float64(n))
	}
	m.must(t, "root", "sync")
	back := map[string]int{}
	n := rounds(t, 1)
	for range n {
		m.cut(t)
		for _, e := range engines() {
			start := time.Now()
			if scriptcmd.Poll(func() bool { return dev("%s || true", e.running) == "1" }) {
				back[e.name]++
				t.Logf("%s: back %.0f s after it was looked for", e.name, time.Since(start).Seconds())
			}
		}
	}
	for _, e := range engines() {
		t.Logf("%s: back by itself after %d of %d power cuts", e.name, back[e.name], n)
	}
	if back["podrun"] != n {
		t.Errorf("podrun's pod does not come back by itself")
	}
	dev("podrun/bin/podrun systemd uninstall ours; systemctl --user disable -q --now %s; podman kube down peer.yaml; podman system reset --force; rm -rf .config/systemd", engines()[1].unit)
	m.nothingLeft(t)
}
