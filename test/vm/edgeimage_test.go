package vm

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
)

// edgeState, run by pods, prints what stays the same while no container restarts, including its process.
const edgeState = `for name in collector watch web; do
	podrun get pod $name -o 'jsonpath={.metadata.uid} {.status.startTime} {.status.containerStatuses}'
	podrun exec $name -- cut -d" " -f 1,22 /proc/1/stat
done`

// edgePrograms, run by root, prints the programs of the pods.
const edgePrograms = `readlink /proc/[0-9]*/exe | grep /libexec/ | sort -u`

// TestEdgeImage boots the image of examples/edge-image into its three pods, and updates podrun, with a power cut after it.
func TestEdgeImage(t *testing.T) {
	needMachines(t)
	t.Parallel()
	stage(t, "amd64")
	stage(t, "release-amd64")
	image := stage(t, "edge-image")
	m := start(t, "debian", "VM_IMAGE="+image, "VM_USER=pods")
	m.threePods(t)
	if got := m.must(t, "root", "findmnt", "-n", "-o", "OPTIONS", "/"); !strings.HasPrefix(got, "ro,") {
		t.Errorf("the root file system is mounted with %s", got)
	}
	if got := m.must(t, "root", "systemctl", "--failed", "--plain", "--no-legend"); got != "" {
		t.Errorf("units failed:\n%s", got)
	}

	state, programs := m.must(t, "session", "sh", "-c", edgeState), m.must(t, "root", "sh", "-c", edgePrograms)
	if strings.Count(state, `"restartCount":0`) != 3 {
		t.Errorf("pods were restarted:\n%s", state)
	}
	m.script(t, "put", image+"/podrun", "/tmp")
	m.must(t, "root", "podrun-update", "/tmp/podrun")
	m.must(t, "session", "cmp", "/tmp/podrun", "/usr/bin/podrun")
	if got := m.must(t, "session", "sh", "-c", edgeState); got != state {
		t.Errorf("the update changed the pods from\n%s\nto\n%s", state, got)
	}

	m.cut(t)
	m.threePods(t)
	if got := m.must(t, "root", "sh", "-c", edgePrograms); got == "" || got == programs {
		t.Errorf("after the update and a boot the pods still run\n%s", got)
	}
	state = m.must(t, "session", "sh", "-c", edgeState)
	for _, broken := range []string{"head -c 20000000 /usr/bin/podrun", "echo exit 3"} {
		if out, err := m.command("root", "sh", "-c", broken+" >/tmp/broken && podrun-update /tmp/broken").CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "podrun stays as it was") {
			t.Errorf("the update to the output of %q was not refused: %v\n%s", broken, err, out)
		}
	}
	m.current(t, "b")
	m.must(t, "root", "podrun-update", "--rollback")
	m.current(t, "a")
	if got := m.must(t, "session", "sh", "-c", edgeState); got != state {
		t.Errorf("broken updates or the rollback changed the pods from\n%s\nto\n%s", state, got)
	}
}

// threePods waits until the three pods of the image run.
func (m *machine) threePods(t *testing.T) {
	t.Helper()
	running := regexp.MustCompile(`(?m)^(collector|watch|web) +1/1 +Running`)
	var last string
	since := time.Now()
	if !scriptcmd.Poll(func() bool {
		last = m.must(t, "session", "podrun", "ps")
		return len(running.FindAllString(last, -1)) == 3
	}) {
		t.Fatalf("the three pods do not run:\n%s\n%s", last, m.must(t, "root", "journalctl", "-b", "--no-pager", "-n", "100"))
	}
	t.Logf("three pods run after %.0f s", time.Since(since).Seconds())
}

// current fails t unless this slot has the podrun of the machine, and it runs.
func (m *machine) current(t *testing.T, slot string) {
	t.Helper()
	if got := m.must(t, "session", "readlink", "/data/podrun/current"); got != slot+"\n" {
		t.Errorf("podrun is from %s, not from %s", got, slot)
	}
	m.must(t, "session", "podrun", "version")
}
