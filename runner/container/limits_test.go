package container

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/runner/sandbox"
)

// Where libcontainer cannot make cgroups it does not look up the supervisor's in each of many hierarchies;
// but it must not use the top of a hierarchy, where root could make cgroups.
func TestWithoutCgroups(t *testing.T) {
	plan := &pod.Plan{UID: "uid", Containers: []pod.Container{{Name: "a"}}}
	x := New(&sandbox.Sandbox{}, &plan.Containers[0], 0)
	config := &configs.Config{Cgroups: &cgroups.Cgroup{Name: "a-0"}}
	x.completeConfig(&sandbox.Sandbox{Plan: plan}, config)
	atTop := config.Cgroups.Parent == "/" && config.Cgroups.Name == FullID(plan, x)
	if want := !cgroup2Only() && !sandbox.RootIsHostRoot(); atTop != want {
		t.Errorf("they are looked for in %q as %q; at the top: want %t", config.Cgroups.Parent, config.Cgroups.Name, want)
	}
}

// Where there is no cgroup the limit of processes counts all pods' processes. Commands can still stop them.
func TestProcessLimitIsOfAllPods(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	limits := processLimit()
	if len(limits) != 1 || limits[0].Type != unix.RLIMIT_NPROC || limits[0].Hard != limits[0].Soft {
		t.Fatalf("limits %v", limits)
	}
	if got := limits[0].Hard; got != 4096 && got*4 > own.Max*3+3 || got > own.Max {
		t.Errorf("the limit is %d, of the user's own %d", got, own.Max)
	}
}

// libcontainer's process would otherwise send a line for every step, which the supervisor would read and
// discard.
func TestLibcontainerLogsErrorsOnly(t *testing.T) {
	c := pod.Container{Name: "a"}
	if p := New(&sandbox.Sandbox{}, &c, 0).newProcess(nil, nil, "/"); p.LogLevel != "2" {
		t.Errorf("its log level is %q, want the level of errors", p.LogLevel)
	}
}

// beRoot sets RootIsHostRoot until the test ends.
func beRoot(t *testing.T, root bool) {
	before := sandbox.RootIsHostRoot
	sandbox.RootIsHostRoot = func() bool { return root }
	t.Cleanup(func() { sandbox.RootIsHostRoot = before })
}

// Where libcontainer makes cgroups itself, as root on a host without the unified hierarchy, each container
// of each pod has its own, and libcontainer starts commands, because it puts them there.
func TestRootsContainersShareNoCgroup(t *testing.T) {
	beRoot(t, true)
	seen := map[string]bool{}
	var config *configs.Config
	for _, uid := range []string{"one", "other"} {
		plan := &pod.Plan{UID: uid, Containers: []pod.Container{{Name: "same"}}}
		s := &sandbox.Sandbox{Plan: plan}
		config = &configs.Config{Cgroups: &cgroups.Cgroup{Name: "same-0"}, NoNewKeyring: true}
		New(s, &plan.Containers[0], 0).completeConfig(s, config)
		if name := config.Cgroups.Name; seen[name] || name == "" {
			t.Errorf("two pods' containers have the cgroup %q", name)
		}
		seen[config.Cgroups.Name] = true
	}
	p := &libcontainer.Process{Capabilities: &configs.Capabilities{}}
	if shimCanExec(config, p) {
		t.Error("a command is begun outside of the container's cgroups")
	}
	beRoot(t, false)
	if !shimCanExec(config, p) {
		t.Error("an ordinary user's, which has none, is begun by libcontainer")
	}
}

// TestUlimits: a container's limits are added; one that podrun sets stays if it is lower, and one above the user's own
// is refused.
func TestUlimits(t *testing.T) {
	highest := func(int) uint64 { return 5000 }
	before := []configs.Rlimit{{Type: unix.RLIMIT_CORE}, {Type: unix.RLIMIT_NPROC, Soft: 4096, Hard: 4096}}
	got, err := withUlimits(before, []pod.Ulimit{{Name: "nofile", Soft: 10, Hard: 5000}, {Name: "nproc", Soft: 100, Hard: 5000}}, highest)
	want := []configs.Rlimit{{Type: unix.RLIMIT_CORE}, {Type: unix.RLIMIT_NPROC, Soft: 100, Hard: 4096}, {Type: unix.RLIMIT_NOFILE, Soft: 10, Hard: 5000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	_, err = withUlimits(nil, []pod.Ulimit{{Name: "memlock", Soft: 0, Hard: math.MaxUint64}}, highest)
	if err == nil || !strings.Contains(err.Error(), "set ulimit memlock: no limit is above the hard limit of the user of podrun, 5000") {
		t.Error(err)
	}
	list, err := podutil.ParseUlimits(strings.Join(slices.Collect(func(yield func(string) bool) {
		for _, l := range rlimits {
			if !yield(l.name + "=1") {
				return
			}
		}
	}), ","))
	if err != nil || len(list) != len(rlimits) {
		t.Errorf("manifests may not have every limit: %v", err)
	}
}
