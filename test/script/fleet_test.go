package script

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/scriptcmd"
	"github.com/podrun/podrun/internal/testenv"
)

const (
	fleetBoxes = 3
	longFleet  = 20 // with tortureEnv
	tortureEnv = "PODRUN_TORTURE"
	imageType  = "application/vnd.oci.image.manifest.v1+json"
)

// fleetPod is ready when its first command is done.
const fleetPod = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: IMAGE
    command: [sh, -c, "trap exit TERM; FIRST; sleep 1000 & wait"]
    readinessProbe: {periodSeconds: 1, exec: {command: [test, -e, /ready]}}
`

// fleet is boxes that follow a set of one registry. The first box is the canary.
type fleet struct {
	remote *remote
	boxes  []*host
	author *host  // pushes sets
	base   []byte // the lower layer of the images
	last   string // the version that all boxes run
}

// newFleet makes boxes, each with a home, a runtime directory and an image store of its own.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	testenv.Need(t, testenv.Pods)
	bin, rootfs := prepare(t)
	base, err := os.ReadFile(rootfs)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{remote: newRemote(t), base: base}
	dir := t.TempDir()
	for i := range n + 1 {
		h := &host{dir: filepath.Join(dir, fmt.Sprintf("box%d", i))}
		if err := os.Mkdir(h.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if h, err = newEmptyHost(h.dir, bin); err != nil {
			t.Fatal(err)
		}
		f.boxes = append(f.boxes, h)
	}
	f.boxes, f.author = f.boxes[:n], f.boxes[n]
	t.Cleanup(func() { f.each(f.boxes, func(h *host) { h.clear() }) })
	return f
}

// each calls do for boxes, for all at the same time.
func (f *fleet) each(boxes []*host, do func(*host)) {
	var all sync.WaitGroup
	for _, h := range boxes {
		all.Go(func() { do(h) })
	}
	all.Wait()
}

// version is a version of the set.
type version struct {
	name    string
	never   bool   // it is never ready
	padding int    // size of what its image contains beside the base
	made    string // SOURCE_DATE_EPOCH; "": now
}

// push pushes an image, and the set that uses it, as canary. It returns the digest of the set.
func (f *fleet) push(t *testing.T, v version) string {
	t.Helper()
	var top bytes.Buffer
	w := tar.NewWriter(&top)
	padding := make([]byte, v.padding)
	rand.Read(padding)
	for name, content := range map[string][]byte{"version": []byte(v.name), "padding": padding} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		w.Write(content)
	}
	w.Close()
	const layerType = "application/vnd.oci.image.layer.v1.tar"
	layers := []descriptor{f.remote.blob(t, "fleet/app", layerType, f.base), f.remote.blob(t, "fleet/app", layerType, top.Bytes())}
	config, err := json.Marshal(map[string]any{"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layers[0].Digest, layers[1].Digest}}})
	if err != nil {
		t.Fatal(err)
	}
	f.remote.manifest(t, "fleet/app", v.name, imageType, map[string]any{
		"config": f.remote.blob(t, "fleet/app", "application/vnd.oci.image.config.v1+json", config), "layers": layers})
	first := "touch /ready"
	if v.never {
		first = ":"
	}
	files := filepath.Join(f.author.dir, v.name)
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("IMAGE", f.remote.address+"/fleet/app:"+v.name, "FIRST", first).Replace(fleetPod)
	if err := os.WriteFile(filepath.Join(files, "pod.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := f.author.podrun("image", "push", files, "oci://"+f.remote.address+"/fleet/set:canary")
	cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+v.made)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	_, digest, _ := strings.Cut(strings.TrimSpace(string(out)), "@")
	return digest
}

// promote moves the tag stable to the set of canary.
func (f *fleet) promote(t *testing.T) {
	t.Helper()
	out, err := f.author.command("skopeo", "copy", "-q", "--src-tls-verify=false", "--dest-tls-verify=false",
		"docker://"+f.remote.address+"/fleet/set:canary", "docker://"+f.remote.address+"/fleet/set:stable").CombinedOutput()
	if err != nil {
		t.Fatalf("promote: %v\n%s", err, out)
	}
}

// look is a look of a box at its ring.
type look struct {
	box         *host
	out, errors string
	code        int
	usage       *syscall.Rusage
}

// follow is the command of a look.
func (f *fleet) follow(h *host, options ...string) []string {
	ring := "stable"
	if h == f.boxes[0] {
		ring = "canary"
	}
	return slices.Concat([]string{"follow", "--once", "--stable", "0s", "--timeout", "2m"}, options, []string{"oci://" + f.remote.address + "/fleet/set:" + ring})
}

// looks lets boxes look once, all at the same time.
func (f *fleet) looks(t *testing.T, boxes []*host, options ...string) []look {
	t.Helper()
	list := make([]look, len(boxes))
	f.each(boxes, func(h *host) {
		l := look{box: h}
		cmd := h.podrun(f.follow(h, options...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Errorf("follow: %v", err)
			return
		}
		l.out, l.errors, l.code = out.String(), errs.String(), cmd.ProcessState.ExitCode()
		l.usage = cmd.ProcessState.SysUsage().(*syscall.Rusage)
		list[slices.Index(boxes, h)] = l
	})
	return list
}

// expect checks that looks had an exit code, and wrote a text to either stream.
func expect(t *testing.T, looks []look, code int, text string) {
	t.Helper()
	for _, l := range looks {
		if l.code != code || !strings.Contains(l.out+l.errors, text) {
			t.Fatalf("%s: exit code %d, want %d and %q:\n%s%s", filepath.Base(l.box.dir), l.code, code, text, l.out, l.errors)
		}
	}
}

// runs checks that boxes run a version, in pods that are not restarted while nothing changes.
func (f *fleet) runs(t *testing.T, boxes []*host, name string) {
	t.Helper()
	f.each(boxes, func(h *host) {
		out, err := h.podrun("exec", "web", "--", "cat", "/version").CombinedOutput()
		if err != nil || string(out) != name {
			t.Errorf("%s runs version %q (%v), want %q", filepath.Base(h.dir), out, err, name)
		}
	})
}

// pods returns the pods of boxes, each with its container.
func (f *fleet) pods(t *testing.T, boxes []*host) string {
	t.Helper()
	list := make([]string, len(boxes))
	f.each(boxes, func(h *host) {
		out, err := h.podrun("get", "pod", "web", "-o", "jsonpath={.metadata.uid} {.spec.containers[0].image} {.status.containerStatuses[0].containerID}").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(h.dir), err)
		}
		list[slices.Index(boxes, h)] = string(out)
	})
	return strings.Join(list, "\n")
}

// expectRequests waits until the log has the requests since it had a size, and no others.
func (f *fleet) expectRequests(t *testing.T, since int64, want map[string]int) {
	t.Helper()
	var got map[string]int
	scriptcmd.Poll(func() bool {
		got = map[string]int{}
		total := 0
		for _, r := range f.remote.requests(t, since) {
			got[r.what]++
			total++
		}
		wanted := 0
		for _, n := range want {
			wanted += n
		}
		return maps.Equal(got, want) || total >= wanted
	})
	if !maps.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// heads returns the requests of n looks of each box that find nothing new: the library for registries asks for the version
// of the interface before.
func (f *fleet) heads(n int) map[string]int {
	return map[string]int{"GET /v2/": n * len(f.boxes), "HEAD /v2/fleet/set/manifests/canary": n, "HEAD /v2/fleet/set/manifests/stable": n * (len(f.boxes) - 1)}
}

// TestFleet: boxes follow the tags of a set in one registry, through all that a registry, a network and an author do to
// them.
func TestFleet(t *testing.T) {
	t.Parallel()
	n := fleetBoxes
	if os.Getenv(tortureEnv) != "" {
		n = longFleet
	}
	f := newFleet(t, n)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the first version", f.first}, {"a moved tag", f.moved}, {"nothing new", f.unchanged}, {"rings", f.rings},
		{"never ready", f.neverReady}, {"an older one", f.older}, {"the registry dies", f.dies}, {"cut connections", f.cut},
		{"signatures", f.signatures}, {"kinds of artifacts", f.kinds}, {"removed", f.removed},
	} {
		began := time.Now()
		if step.run(t); t.Failed() { // a step needs those before it
			t.Fatalf("step %q failed", step.name)
		}
		t.Logf("%s: %v", step.name, time.Since(began).Round(time.Millisecond))
	}
}

// applied lets all boxes look once, which makes them run a new version.
func (f *fleet) applied(t *testing.T, name string) {
	t.Helper()
	since, began := f.remote.logged(t), time.Now()
	expect(t, f.looks(t, f.boxes), 0, "set/set applied")
	took := time.Since(began)
	f.runs(t, f.boxes, name)
	f.last = name
	kinds := map[string]int{}
	requests := f.remote.requests(t, since)
	for _, r := range requests {
		kinds[r.what[:strings.LastIndex(r.what, "/")]]++
	}
	t.Logf("%d boxes run version %s after %v; %d requests: %v", len(f.boxes), name, took.Round(time.Millisecond), len(requests), kinds)
}

func (f *fleet) first(t *testing.T) {
	f.push(t, version{name: "1"})
	f.promote(t)
	f.applied(t, "1")
}

func (f *fleet) moved(t *testing.T) {
	f.push(t, version{name: "2"})
	f.promote(t)
	f.applied(t, "2")
}

// unchanged measures looks that find nothing, one after the other.
func (f *fleet) unchanged(t *testing.T) {
	since := f.remote.logged(t)
	var times, blocks []int64
	for _, h := range f.boxes {
		l := f.looks(t, []*host{h})
		expect(t, l, 0, "set/set unchanged")
		times = append(times, (l[0].usage.Utime.Nano()+l[0].usage.Stime.Nano())/1e6)
		blocks = append(blocks, l[0].usage.Oublock)
	}
	f.expectRequests(t, since, f.heads(1))
	slices.Sort(times)
	slices.Sort(blocks)
	t.Logf("a look takes %d ms of a processor in the median, %d to %d ms, and writes at most %d blocks", times[len(times)/2], times[0], times[len(times)-1], blocks[len(blocks)-1])
}

// rings: a version is on the canary first.
func (f *fleet) rings(t *testing.T) {
	f.push(t, version{name: "3"})
	expect(t, f.looks(t, f.boxes[:1]), 0, "set/set applied")
	expect(t, f.looks(t, f.boxes[1:]), 0, "set/set unchanged")
	f.runs(t, f.boxes[:1], "3")
	f.runs(t, f.boxes[1:], "2")
	f.promote(t)
	expect(t, f.looks(t, f.boxes[:1]), 0, "set/set unchanged")
	expect(t, f.looks(t, f.boxes[1:]), 0, "set/set applied")
	f.runs(t, f.boxes, "3")
	f.last = "3"
}

// neverReady: all boxes go back, and each tries the version once.
func (f *fleet) neverReady(t *testing.T) {
	f.push(t, version{name: "never", never: true})
	f.promote(t)
	began := time.Now()
	expect(t, f.looks(t, f.boxes, "--timeout", "2s"), 1, "it is back at its former version")
	t.Logf("%d boxes are back after %v", len(f.boxes), time.Since(began).Round(time.Millisecond))
	f.runs(t, f.boxes, f.last)
	before, since := f.pods(t, f.boxes), f.remote.logged(t)
	for range 10 {
		expect(t, f.looks(t, f.boxes), 0, "its newest version has failed before, and is not tried again: pod web is not ready")
	}
	f.expectRequests(t, since, f.heads(10))
	if after := f.pods(t, f.boxes); after != before {
		t.Errorf("pods have changed:\n%s\n%s", before, after)
	}
}

// older: nobody can bring back a version by moving the tag. A look at it fetches nothing again.
func (f *fleet) older(t *testing.T) {
	set := f.push(t, version{name: "older", made: "1000000000"})
	f.promote(t)
	before := f.pods(t, f.boxes)
	expect(t, f.looks(t, f.boxes), 1, "set set is not changed: the artifact was made at 2001-09-09T01:46:40Z")
	since := f.remote.logged(t)
	expect(t, f.looks(t, f.boxes), 1, "set set is not changed: the artifact was made at 2001-09-09T01:46:40Z")
	for _, r := range f.remote.requests(t, since) {
		if strings.Contains(r.what, "/blobs/") {
			t.Errorf("%s again, for the set %s", r.what, set)
		}
	}
	if after := f.pods(t, f.boxes); after != before {
		t.Errorf("pods have changed:\n%s\n%s", before, after)
	}
}

// killed is the number of bytes that a connection has returned when the registry dies.
const killed = 3 << 20

// dies: the registry is killed while the canary fetches an image. The next look goes on from there.
func (f *fleet) dies(t *testing.T) {
	f.push(t, version{name: "4", padding: 2 * killed})
	f.promote(t)
	before, canary := f.pods(t, f.boxes[:1]), f.boxes[0]
	dead := make(chan struct{})
	f.remote.link.onCut.Store(sync.OnceFunc(func() { f.remote.kill(); close(dead) }))
	f.remote.link.most.Store(killed)
	var out bytes.Buffer
	cmd := canary.podrun(f.follow(canary)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-dead:
	case err := <-ended:
		t.Fatalf("the look has ended before the registry: %v\n%s", err, &out)
	}
	if os.Getenv(tortureEnv) == "" { // it would give up after half a minute
		cmd.Process.Kill()
	}
	if err := <-ended; err == nil || strings.Contains(out.String(), "applied") {
		t.Fatalf("a set without its image is applied: %s", &out)
	}
	expect(t, f.looks(t, f.boxes[:1]), 1, "pinging container registry")
	if after := f.pods(t, f.boxes[:1]); after != before {
		t.Errorf("the pod has changed:\n%s\n%s", before, after)
	}
	f.remote.link.most.Store(0)
	f.remote.restart(t)
	since := f.remote.logged(t)
	expect(t, f.looks(t, f.boxes[:1]), 0, "set/set applied")
	var blobs []string
	for _, r := range f.remote.requests(t, since) {
		if strings.HasPrefix(r.what, "GET /v2/fleet/app/blobs/") {
			blobs = append(blobs, r.status)
		}
	}
	if !slices.Contains(blobs, "206") || len(blobs) > 2 { // the rest of the layer, and maybe the config
		t.Errorf("GETs of blobs: %v", blobs)
	}
	expect(t, f.looks(t, f.boxes[1:]), 0, "set/set applied")
	f.runs(t, f.boxes, "4")
	f.last = "4"
}

// cut: each connection breaks after a while, and one look is enough all the same.
func (f *fleet) cut(t *testing.T) {
	f.push(t, version{name: "5", padding: 1 << 20})
	f.promote(t)
	f.remote.link.onCut.Store(func() {})
	f.remote.link.most.Store(400 << 10)
	defer f.remote.link.most.Store(0)
	since := f.remote.logged(t)
	f.applied(t, "5")
	parts := 0
	for _, r := range f.remote.requests(t, since) {
		if r.status == "206" {
			parts++
		}
	}
	if parts < len(f.boxes) {
		t.Errorf("%d boxes have fetched %d rests of a layer", len(f.boxes), parts)
	}
}
