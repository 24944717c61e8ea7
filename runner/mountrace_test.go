package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// raceRounds is how often a race is run, each with a container, if scripts/torture does not
// ask for more.
func raceRounds(usual int) int {
	n, err := strconv.Atoi(os.Getenv("PODRUN_RACES"))
	if err != nil {
		n = usual
	}
	return n
}

// race makes containers in a pod that runs, one after the other, while somebody disturbs.
type race struct {
	p       *testPod
	box     *sandbox
	attempt int
	made    map[string]int // by name, how often
}

func newRace(p *testPod) *race {
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	return &race{p: p, box: p.engine.sandbox, made: map[string]int{}}
}

// run makes a container, waits for its end, removes it, and returns what it has written: ""
// if it could not be made.
func (r *race) run(c *pod.Container) string {
	r.p.t.Helper()
	r.attempt++
	x, err := startContainer(r.box, c, r.attempt, nil)
	if err != nil {
		return ""
	}
	r.made[c.Name]++
	_, _ = r.box.estate.ends.wait(x.process)
	x.finish(r.box)
	r.box.estate.ends.forget(x.process)
	if err := x.cleanup.Undo(); err != nil {
		r.p.t.Fatal(err)
	}
	var said strings.Builder
	for _, line := range parse(r.p.t, r.p.place.LogFile(c.Name, r.attempt)) {
		fmt.Fprintln(&said, strings.TrimSuffix(line[2], "\r"))
	}
	return said.String()
}

// exchange swaps pairs of names, as a sibling that shares the volume, until it is told to
// stop: now as fast as it can, so that no moment is without, and now with pauses, in which
// whoever looks a name up again and again comes to an end.
func exchange(pairs [][2]string) (stop func()) {
	var enough atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !enough.Load(); i++ {
			pair := pairs[i%len(pairs)]
			unix.Renameat2(unix.AT_FDCWD, pair[0], unix.AT_FDCWD, pair[1], unix.RENAME_EXCHANGE)
			if i&1024 != 0 {
				_ = unix.Nanosleep(&unix.Timespec{Nsec: 10_000}, nil) // whether it was cut short is all the same
			}
		}
	}()
	return func() { enough.Store(true); <-done }
}

// A sibling swaps a directory of a shared volume for a link to the root while a container
// mounts on it, again and again (CVE-2021-30465): every mount is in the container's
// own root or the volume, or the container is not made.
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
	if strings.Count(string(after), "\n") != strings.Count(string(before), "\n") {
		t.Errorf("mounts before:\n%s\nafter:\n%s", before, after)
	}
	if r.made[victim.Name] == 0 {
		t.Error("no container was ever made: the race was not run")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "canary")); err != nil || string(b) != "host" {
		t.Errorf("the canary has %q, %v", b, err)
	}
}
