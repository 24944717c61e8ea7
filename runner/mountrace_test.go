package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/runner/container"
	"github.com/podrun/podrun/runner/sandbox"
)

// raceRounds returns how often a race is run, each time with a container: usual times the factor of
// scripts/torture.
func raceRounds(usual int) int {
	n, err := strconv.Atoi(os.Getenv("PODRUN_RACES"))
	if err != nil {
		n = usual
	}
	return n
}

// race makes containers in a running pod, one after the other, while another goroutine interferes.
type race struct {
	p       *testPod
	box     *sandbox.Sandbox
	attempt int
	made    map[string]int // number of containers made, by name
}

func newRace(p *testPod) *race {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return &race{p: p, box: p.engine.sandbox, made: map[string]int{}}
}

// run makes a container, waits for its exit, removes it, and returns its output: "" if it could not be
// made.
func (r *race) run(c *pod.Container) string {
	r.p.t.Helper()
	r.attempt++
	x, err := container.Start(r.box, c, r.attempt, nil)
	if err != nil {
		return ""
	}
	r.made[c.Name]++
	_, _ = r.box.Handoff.Exits.Wait(x.Process)
	x.Finish(r.box)
	r.box.Handoff.Exits.Forget(x.Process)
	if err := x.Cleanup.Undo(); err != nil {
		r.p.t.Fatal(err)
	}
	var said strings.Builder
	for _, line := range parse(r.p.t, r.p.place.LogFile(c.Name, r.attempt)) {
		fmt.Fprintln(&said, strings.TrimSuffix(line[2], "\r"))
	}
	return said.String()
}

// exchange swaps pairs of names until stop is called, as a sibling that shares the volume could. It
// alternates between full speed, so that no moment is missed, and phases with pauses, in which a process
// that resolves a name repeatedly can finish.
func exchange(pairs [][2]string) (stop func()) {
	var enough atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !enough.Load(); i++ {
			pair := pairs[i%len(pairs)]
			unix.Renameat2(unix.AT_FDCWD, pair[0], unix.AT_FDCWD, pair[1], unix.RENAME_EXCHANGE)
			if i&1024 != 0 {
				_ = unix.Nanosleep(&unix.Timespec{Nsec: 10_000}, nil) // an interrupted sleep is fine
			}
		}
	}()
	return func() { enough.Store(true); <-done }
}

// A sibling repeatedly swaps a directory of a shared volume for a link to the root while a container mounts
// on it (CVE-2021-30465): every mount ends up in the container's own root or the volume, or the container
// is not made.
func TestMountPathRaces(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "canary"), []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	victim := shell(l, "victim", "exit 1")
	victim.Mounts = []pod.Mount{{Volume: "shared", Path: "/shared"}, {Volume: "own", Path: "/shared/d/m"}}
	idle := shell(l, "idle", "mkdir -p /shared/d/m; ln -s / /shared/evil; touch /shared/ready; exec sleep 1000")
	idle.Mounts = victim.Mounts[:1]
	plan := newPlan(nil, []pod.Container{idle})
	plan.Volumes = []pod.Volume{{Name: "shared", Kind: pod.EmptyDir}, {Name: "own", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20}}
	p := start(t, plan)
	p.running()
	shared := filepath.Join(p.place.VolumesDir(), "shared")
	p.eventually("ready", func([]pod.Event) bool {
		_, err := os.Stat(filepath.Join(shared, "ready"))
		return err == nil
	})
	stop := exchange([][2]string{{filepath.Join(shared, "d"), filepath.Join(shared, "evil")}})
	defer stop()
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	r := newRace(p)
	for range raceRounds(40) {
		r.run(&victim)
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(after)) { // one of the host may have gone, with its directory
		if !strings.Contains(string(before), line) {
			t.Errorf("a new mount: %s", line)
		}
	}
	if r.made[victim.Name] == 0 {
		t.Error("no container was ever made: the race was not run")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "canary")); err != nil || string(b) != "host" {
		t.Errorf("the canary has %q, %v", b, err)
	}
}

// hostileVictims returns containers in which podrun's own mounts lead through the directory d of a volume,
// by links of their images or by their paths.
func hostileVictims(t *testing.T, l string) []pod.Container {
	t.Helper()
	// It prints what is mounted in /proc, writable sysfs mounts anywhere, and what is visible of the host
	// where something of a volume was mounted.
	const script = `awk '$5 ~ /^\/proc/ {print $4, $5, $6} / sysfs / && $6 !~ /^ro,/ {print "sysfs", $5, $6}' /proc/self/mountinfo
for d in . /sub /expr /dev /etc /proc /shared/d/m; do test -e $d/canary && echo "canary in $d"; done
for d in /sub /expr /shared/d/m; do test -e $d/self/status && echo "procfs in $d"; done; true`
	linked := func(name string, links ...string) pod.Container {
		upper := t.TempDir()
		for i := 0; i < len(links); i += 2 {
			at := filepath.Join(upper, links[i])
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(links[i+1], at); err != nil {
				t.Fatal(err)
			}
		}
		c := shell(l, name, script)
		c.Layers = []string{l, upper}
		c.Mounts = []pod.Mount{{Volume: "shared", Path: "/shared"}}
		return c
	}
	with := func(name string, change func(*pod.Container)) pod.Container {
		c := linked(name)
		change(&c)
		return c
	}
	mount := func(m pod.Mount) func(*pod.Container) {
		return func(c *pod.Container) { c.Mounts = append(c.Mounts, m) }
	}
	return []pod.Container{
		linked("dev", "dev", "/shared/d"),
		linked("proc", "proc", "/shared/d"),
		linked("sys", "sys", "/shared/d"),
		linked("etc", "etc", "/shared/d"),
		linked("files", "etc/hosts", "/shared/d/hosts", "etc/hostname", "/shared/d/new/name", "etc/resolv.conf", "/shared/f"),
		linked("sysctls", "etc/hosts", "/shared/d/sys/kernel/core_pattern", "etc/hostname", "/shared/d/self/attr/current"),
		with("message", func(c *pod.Container) { c.TerminationMessagePath = "/shared/d/last/words" }),
		with("cwd", func(c *pod.Container) { c.Cwd = "/shared/d" }),
		with("over", func(c *pod.Container) { c.Mounts[0].Path, c.Mounts[0].SubPath = "/etc", "d" }),
		with("devices", func(c *pod.Container) { c.Mounts[0].Path = "/dev" }),
		with("console", func(c *pod.Container) { c.Mounts[0].Path, c.TTY = "/dev", true }),
		with("files-inside", mount(pod.Mount{Volume: "files", Path: "/shared/d/m"})),
		with("memory-inside", mount(pod.Mount{Volume: "memory", Path: "/shared/d/m"})),
		with("part", mount(pod.Mount{Volume: "shared", Path: "/sub", SubPath: "d/part"})),
		with("whole-part", mount(pod.Mount{Volume: "shared", Path: "/sub", SubPath: "d", ReadOnly: true})),
		with("named-part", func(c *pod.Container) {
			c.Vars = []pod.EnvVar{{Name: "DIR", Value: "d"}}
			c.Mounts = append(c.Mounts, pod.Mount{Volume: "shared", Path: "/expr", SubPathExpr: "$(DIR)/part"})
		}),
	}
}

// hostileVolume fills a shared volume as a sibling could, and returns the links out of it that are to be
// tried.
func hostileVolume(t *testing.T, shared, outside string) (links []string) {
	t.Helper()
	for _, name := range []string{"d/part/f", "d/m/f", "d/pts/f", "d/hosts", "d/self/attr/current", "d/sys/kernel/core_pattern", "f", "null", "console"} {
		writeBelow(t, shared, name, "")
	}
	if err := os.MkdirAll(filepath.Join(shared, "pts"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/shared/null", filepath.Join(shared, "pts", "ptmx")); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 30)
	return []string{outside, up + outside[1:], "/proc", up + "proc", "/proc/self/root" + outside, "/proc/1/cwd"}
}

// hostilePairs makes links beside a directory and files of the volume, and returns the pairs to swap.
func hostilePairs(t *testing.T, shared, link string) (pairs [][2]string) {
	t.Helper()
	for name, target := range map[string]string{"d": link, "f": link + "/canary", "null": "/proc/sys/kernel/core_pattern", "console": link + "/1"} {
		evil := filepath.Join(shared, "evil-"+name)
		if err := os.Remove(evil); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink(target, evil); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, [2]string{filepath.Join(shared, name), evil})
	}
	return pairs
}

// A sibling swaps directories and files of a shared volume for links that lead out of it, while containers
// are made in which podrun's own mounts lead through the volume: its /dev, /proc, /sys, the files in /etc,
// the termination message, configMaps, parts of volumes (CVE-2019-19921, CVE-2023-27561, CVE-2025-31133,
// CVE-2025-52565, CVE-2025-52881). Every container that is made has the same /proc as without interference
// and sees nothing of the host, on which nothing is created, changed or mounted.
func TestOwnMountPathRaces(t *testing.T) { byEachInit(t, raceOwnMounts) }

func raceOwnMounts(t *testing.T, start func(t *testing.T, plan *pod.Plan) *testPod) {
	testenv.NoLeaks(t)
	l, dir := layer(t), t.TempDir()
	for _, name := range []string{"canary", "hosts", "self/attr/current", "sys/kernel/core_pattern"} {
		writeBelow(t, dir, name, "host")
	}
	victims := hostileVictims(t, l)
	idle := shell(l, "idle", "exec sleep 1000")
	idle.Mounts = victims[0].Mounts[:1]
	plan := newPlan(nil, []pod.Container{idle})
	plan.Volumes = []pod.Volume{
		{Name: "shared", Kind: pod.EmptyDir}, {Name: "memory", Kind: pod.EmptyDirMemory, SizeLimit: 1 << 20},
		{Name: "files", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "a", Text: "b", Mode: 0o644}}}}},
	}
	p := start(t, plan)
	p.running()
	r, before := newRace(p), hostSeen(t, dir)
	plain := shell(l, "plain", "")
	plain.Args = victims[0].Args
	want := r.run(&plain)
	if !strings.Contains(want, "/null /proc/interrupts") || strings.Contains(want, " in ") || strings.Contains(want, "sysfs") {
		t.Fatalf("undisturbed, a container has %q", want)
	}
	shared := filepath.Join(p.place.VolumesDir(), "shared")
	links := hostileVolume(t, shared, dir)
	rounds, round := raceRounds(len(links)*len(victims)), 0 // by default each link for each victim
	for n, link := range links {
		pairs := hostilePairs(t, shared, link)
		stop := exchange(pairs)
		for ; round < rounds*(n+1)/len(links); round++ {
			c := &victims[round%len(victims)]
			if got := r.run(c); got != "" && got != want {
				t.Errorf("%s, with a link to %s: %q, undisturbed %q", c.Name, link, got, want)
			}
		}
		stop()
		for _, pair := range pairs { // links have their original names again
			if fi, err := os.Lstat(pair[0]); err != nil || fi.Mode().Type() != fs.ModeSymlink {
				continue
			}
			if err := unix.Renameat2(unix.AT_FDCWD, pair[0], unix.AT_FDCWD, pair[1], unix.RENAME_EXCHANGE); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log("made, and how often:", r.made)
	if after := hostSeen(t, dir); after != before {
		t.Errorf("the host had\n%s\nand has\n%s", before, after)
	}
	if len(r.made) < 3 { // plain is one of them
		t.Errorf("only these were ever made, and how often: %v", r.made)
	}
}

func writeBelow(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// hostSeen returns the content of a directory, and the number of mounts.
func hostSeen(t *testing.T, dir string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintln(strings.Count(string(mounts), "\n"), "mounts")
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b, _ := os.ReadFile(path) // empty for a directory
		said += fmt.Sprintf("%s %v %q\n", path, d.Type(), b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}
