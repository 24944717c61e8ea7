package script

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
	"github.com/podrun/podrun/internal/systemd/systemdtest"
)

// killedSet are the manifests of a version of a set: VERSION, IMAGE, OTHER and READY differ.
const killedSet = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {version: VERSION}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: localhost/IMAGE:1, command: [sh, -c, "READY; trap 'exit 0' TERM; sleep 1000 & wait"], volumeMounts: [{name: page, mountPath: /page}],
     readinessProbe: {periodSeconds: 1, exec: {command: [test, -e, /ready]}}}
  volumes: [{name: page, configMap: {name: page}}]
---
apiVersion: v1
kind: Pod
metadata: {name: OTHER}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/IMAGE:1, command: [sh, -c, "trap 'exit 0' TERM; sleep 1000 & wait"]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/IMAGE:1, command: [sh, -c, "trap 'exit 0' TERM; sleep 1000 & wait"]}]}
`

const killedSetBeside = `
apiVersion: v1
kind: Pod
metadata: {name: mine}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/a:1, command: [sh, -c, "trap 'exit 0' TERM; sleep 1000 & wait"]}]}
`

// setVersions are the values of the versions' manifests. bad is never ready.
var setVersions = map[string]struct{ image, other, ready string }{
	"v1":  {"a", "old", "touch /ready"},
	"v2":  {"b", "new", "touch /ready"},
	"bad": {"b", "worse", ":"},
}

// setBed is a host with a set, and a pod beside it.
type setBed struct {
	*testing.T
	*host
	mine string // the pod beside the set, and its container
}

// newSetBed makes the images and the versions.
func newSetBed(t *testing.T) *setBed {
	bin, rootfs := prepare(t)
	h, err := newHost(t.TempDir(), bin, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.clear)
	b := &setBed{T: t, host: h}
	for _, image := range []string{"a", "b"} {
		script := `cd "$1" && cp "$2" $3.tar && echo $3 >name && tar --append -f $3.tar --owner=0 --group=0 name && rm name`
		if out, err := exec.Command("sh", "-ec", script, "sh", h.dir, rootfs, image).CombinedOutput(); err != nil {
			t.Fatalf("make image %s: %v\n%s", image, err, out)
		}
		b.must("image", "import", filepath.Join(h.dir, image+".tar"), "localhost/"+image+":1")
	}
	for version, v := range setVersions {
		text := strings.NewReplacer("VERSION", version, "IMAGE", v.image, "OTHER", v.other, "READY", v.ready).Replace(killedSet)
		if err := os.WriteFile(b.source(version), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(b.source("mine"), []byte(killedSetBeside), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *setBed) source(version string) string { return filepath.Join(b.dir, version+".yaml") }

// follow returns a look at a version. bad is tried each time.
func (b *setBed) follow(version string) *exec.Cmd {
	args := []string{"follow", "--once", "--name", "site", "--stable", "0s"}
	if version == "bad" {
		args = append(args, "--retry", "--timeout", "1500ms")
	}
	return b.podrun(append(args, b.source(version))...)
}

// must runs podrun and returns its output.
func (b *setBed) must(args ...string) string {
	b.Helper()
	return b.succeed(b.podrun(args...))
}

func (b *setBed) succeed(cmd *exec.Cmd) string {
	b.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, &errs)
	}
	return strings.TrimSpace(string(out))
}

// record returns the state of the set, and the version that it had last.
func (b *setBed) record() (state, version string) {
	b.Helper()
	var sets []struct {
		State   string
		Current struct{ ID string }
	}
	out := b.must("follow", "status", "site", "-o", "json")
	if err := json.Unmarshal([]byte(out), &sets); err != nil || len(sets) != 1 {
		b.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "data/podrun/sets/site", sets[0].Current.ID))
	if err != nil {
		b.Fatal(err)
	}
	if strings.Contains(string(text), "version: v1") {
		return sets[0].State, "v1"
	}
	return sets[0].State, "v2"
}

// isOf waits until all parts of the set are of a version: pods of a Deployment end after its roll-out.
func (b *setBed) isOf(version, when string) {
	b.Helper()
	v := setVersions[version]
	want := []string{
		"pod/api is of " + v.image, "pod/mine", "pod/" + v.other + " is of " + v.image, "pod/web is of " + v.image, "page of web is of " + version,
		"configmap is of " + version, "deployment is of localhost/" + v.image + ":1, 1 ready",
	}
	slices.Sort(want)
	var got []string
	if !scriptcmd.Poll(func() bool {
		got = b.parts()
		return slices.Equal(got, want)
	}) {
		b.Fatalf("%s the set is not of version %s:\n%s", when, version, strings.Join(got, "\n"))
	}
	if mine := b.beside(); mine != b.mine {
		b.Fatalf("%s the pod beside the set is %s, not %s", when, mine, b.mine)
	}
}

// parts returns what the parts of the set are of.
func (b *setBed) parts() []string {
	get := func(args ...string) string {
		out, _ := b.podrun(args...).Output()
		return strings.TrimSpace(string(out))
	}
	image, ready, _ := strings.Cut(get("get", "deployment", "api", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}"), " ")
	image, _, _ = strings.Cut(image, "@")
	parts := []string{
		"page of web is of " + get("exec", "web", "--", "cat", "/page/version"),
		"configmap is of " + get("get", "configmap", "page", "-o", "jsonpath={.data.version}"),
		"deployment is of " + image + ", " + ready + " ready",
	}
	for _, pod := range strings.Fields(get("get", "pods", "-o", "name")) {
		name := strings.TrimPrefix(pod, "pod/")
		if of, _, _ := strings.Cut(name, "-"); of == "api" {
			pod = "pod/api"
		}
		if name != "mine" {
			pod += " is of " + get("exec", name, "--", "cat", "/name")
		}
		parts = append(parts, pod)
	}
	slices.Sort(parts)
	return parts
}

// beside returns the pod beside the set.
func (b *setBed) beside() string {
	return b.must("get", "pod", "mine", "-o", "jsonpath={.metadata.uid} {.status.containerStatuses[0].containerID}")
}

// startBeside starts the pod beside the set again, after it was killed.
func (b *setBed) startBeside(when string) {
	b.Helper()
	uid, _, _ := strings.Cut(b.mine, " ")
	b.must("up", "-d", "--wait", b.source("mine"))
	b.mine = b.beside()
	if !strings.HasPrefix(b.mine, uid+" ") {
		b.Fatalf("%s the pod beside the set is %s, not %s", when, b.mine, uid)
	}
}

// moment is when a change is killed: in its way back, or not, and after a time.
type moment struct {
	wayBack bool
	after   time.Duration
}

// killed changes the set to a version, kills follow at a moment, and reports whether it still ran.
// With all it kills all of the user's processes of podrun, too.
func (b *setBed) killed(version string, m moment, all bool) bool {
	b.Helper()
	cmd := b.follow(version)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for m.wayBack && lines.Scan() && !strings.Contains(lines.Text(), ": going back: ") {
	}
	rest := make(chan struct{})
	go func() {
		for lines.Scan() {
		}
		close(rest)
	}()
	timer := time.NewTimer(m.after)
	select {
	case <-timer.C:
	case <-rest:
	}
	cmd.Process.Kill()
	if all {
		b.killAll()
	}
	<-rest
	cmd.Wait()
	return cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
}

// killAll kills all of the user's processes of podrun, and waits for their ends.
func (b *setBed) killAll() {
	killed := map[int]bool{}
	for found := true; found; {
		found = false
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			cmdline, _ := os.ReadFile(dir + "/cmdline")
			environ, _ := os.ReadFile(dir + "/environ")
			if !killed[pid] && bytes.Contains(append(cmdline, environ...), []byte(b.dir+"/")) {
				found = true
				killed[pid] = syscall.Kill(pid, syscall.SIGKILL) == nil
			}
		}
	}
	for pid := range killed {
		if !scriptcmd.Poll(func() bool { _, state := nameOf(pid); return state == 0 || state == 'Z' }) {
			b.Fatalf("process %d does not end", pid)
		}
	}
}

// TestKilledSets kills `podrun follow`, and in every second round all other processes of the user's
// podrun too, while a set is changed or goes back. One `podrun follow` makes all of the set one
// version again. tortureEnv is the number of kills.
func TestKilledSets(t *testing.T) {
	t.Parallel()
	b := newSetBed(t)
	b.succeed(b.follow("v2"))
	b.must("up", "-d", "--wait", b.source("mine"))
	begun := time.Now()
	b.succeed(b.follow("v1"))
	spans := map[bool]float64{false: float64(time.Since(begun)), true: float64(time.Since(begun))} // within which a change, and its way back, is killed
	b.mine = b.beside()
	b.isOf("v1", "at first")
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv(tortureEnv)); err == nil {
		rounds = n
	}
	kills := map[string]int{}
	for i := range rounds {
		target, all := "v2", i%2 == 1
		m := moment{wayBack: i%5 == 4}
		if m.wayBack {
			target = "bad"
		}
		m.after = time.Duration(spans[m.wayBack] * (float64(i/2%10) + rand.Float64()) / 10)
		late := !b.killed(target, m, all)
		if spans[m.wayBack] *= 1.05; late {
			spans[m.wayBack] *= 0.8
		}
		state, version := b.record()
		when := fmt.Sprintf("round %d: after a kill in the change to %s, %+v, all: %v, too late: %v, now %s with %s:", i+1, target, m, all, late, state, version)
		t.Log(when)
		if late {
			state = "too late"
		}
		kills[state]++
		for j, next := range afterKill(state, version, i%4 < 2) {
			out := b.succeed(b.follow(next))
			if all && j == 0 {
				b.startBeside(when)
			}
			b.isOf(next, when+"\n"+out+"\n")
		}
	}
	t.Logf("%d kills: %v", rounds, kills)
	b.must("follow", "rm", "site")
	b.must("down", "mine")
}

// afterKill returns the versions that follow gets after a kill: back is first the one before the change, else at once the
// one that was tried. A set that has nothing to finish gets another version, which starts killed pods again.
func afterKill(state, version string, back bool) []string {
	switch {
	case version == "v2":
		return []string{"v1"}
	case back && (state == "trying" || state == "returning"):
		return []string{"v1", "v2", "v1"}
	}
	return []string{"v2", "v1"}
}

// TestSetAtShutdown: a version whose pods end because the machine shuts down has not failed.
func TestSetAtShutdown(t *testing.T) {
	b := newSetBed(t)
	b.succeed(b.follow("v1"))
	manager := systemdtest.Start(t, filepath.Join(b.dir, "run"))
	for _, down := range []bool{true, false} {
		manager.ShutDown(down)
		if out, err := b.follow("bad").CombinedOutput(); err == nil {
			t.Errorf("it is applied: %s", out)
		}
		if status := b.must("follow", "status", "site"); strings.Contains(status, "Rejected:") == down {
			t.Errorf("in a shutdown: %v:\n%s", down, status)
		}
	}
	b.must("follow", "rm", "site")
}
