package runner

import (
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

// raceRounds is how often a race is run, each with a container; scripts/torture asks for
// more.
func raceRounds() int {
	n, err := strconv.Atoi(os.Getenv("PODRUN_RACES"))
	if err != nil {
		n = 200
	}
	return n
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
	var stop atomic.Bool
	swapping := make(chan struct{})
	go func() { // as a sibling that shares the volume
		defer close(swapping)
		for !stop.Load() {
			unix.Renameat2(unix.AT_FDCWD, filepath.Join(shared, "d"), unix.AT_FDCWD, filepath.Join(shared, "evil"), unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { stop.Store(true); <-swapping }()
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	p.engine.mu.Lock()
	box := p.engine.sandbox
	p.engine.mu.Unlock()
	made := 0
	for i := range raceRounds() {
		x, err := startContainer(box, &victim, i+1, nil)
		if err != nil {
			continue
		}
		made++
		_, _ = box.estate.ends.wait(x.process)
		x.finish(box)
		box.estate.ends.forget(x.process)
		if err := x.cleanup.Undo(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(after), "\n") != strings.Count(string(before), "\n") {
		t.Errorf("mounts before:\n%s\nafter:\n%s", before, after)
	}
	if made == 0 {
		t.Error("no container was ever made: the race was not run")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "canary")); err != nil || string(b) != "host" {
		t.Errorf("the canary has %q, %v", b, err)
	}
}
