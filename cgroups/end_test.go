package cgroups

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
)

func TestForkBombHitsThePodsLimit(t *testing.T) {
	p := createPod(t, subtree(t), Limits{Pids: 40})
	cmd := play("fork")
	enter(t, p, "bomb", cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(said, "resource temporarily unavailable") {
		t.Errorf("the bomb said %q, %v", said, err)
	}
	current, err := strconv.Atoi(files(t, p.Path(), "pids.current")["pids.current"])
	if err != nil || current > 40 {
		t.Errorf("%d processes and threads, %v; the limit is 40", current, err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	killed(t, cmd)
	// This process, PID 1 of the namespace, has inherited its children.
	for err = nil; err == nil; {
		_, err = unix.Wait4(-1, nil, 0, nil)
	}
}

func TestRemoveTakesEverythingDown(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	procs := []*exec.Cmd{start(t, p, "web", "sleep"), start(t, p, "db/deep/inside", "sleep"), start(t, p, "db/beside", "sleep")}
	if err := os.MkdirAll(p.Path()+"/left/over", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Remove(p.Path()); err != nil {
		t.Fatal(err)
	}
	gone(t, p.Path())
	for _, cmd := range procs {
		killed(t, cmd)
	}
}

func TestKillWithoutTheKernelsHelp(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	procs := []*exec.Cmd{start(t, p, "web", "sleep"), start(t, p, "db", "sleep")}
	if err := killEach(p.Path()); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range procs {
		killed(t, cmd)
	}
}

func TestNameIsTakenOrLeftOver(t *testing.T) {
	s := subtree(t)
	p := createPod(t, s, Limits{Pids: 5})
	cmd := start(t, p, "web", "sleep")
	if _, err := s.CreatePod(podName(t), Limits{}, nil); err == nil || !strings.Contains(err.Error(), "in use by another pod") {
		t.Errorf("a second pod of the same name: %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the first pod's process: %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	killed(t, cmd)
	again := createPod(t, s, Limits{})
	if got := files(t, again.Path(), "pids.max")["pids.max"]; got != "2048" {
		t.Errorf("the left-over cgroup's limit stayed: pids.max %s", got)
	}
	gone(t, filepath.Join(again.Path(), "web"))
}

func TestContainerCannotMakeCgroupsWithoutEnd(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	for i := range 2 * maxDescendants {
		err := os.Mkdir(filepath.Join(p.Path(), strconv.Itoa(i)), 0o755)
		if err == nil {
			continue
		}
		if i != maxDescendants || !errors.Is(err, unix.EAGAIN) {
			t.Errorf("after %d: %v", i, err)
		}
		return
	}
	t.Errorf("%d cgroups were made", 2*maxDescendants)
}

func TestContainerPathIsBelowTheMount(t *testing.T) {
	s := subtree(t)
	p := createPod(t, s, Limits{})
	want := regexp.MustCompile(`^/[^/].*/` + regexp.QuoteMeta(podName(t)) + `/web$`)
	if got := p.ContainerPath("web"); !want.MatchString(got) || strings.HasPrefix(got, delegation.Mount) {
		t.Errorf("got %s", got)
	}
}

func TestProcessesOfOursMakeRoom(t *testing.T) {
	s := subtree(t)
	// A cgroup of its own with two processes stands for a unit with a program and
	// its child.
	unit := filepath.Join(s.Path, podName(t)+".unit")
	if err := os.Mkdir(unit, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(unit); err != nil {
			t.Error(err)
		}
	})
	inner := Subtree{Path: unit, Controllers: s.Controllers}
	a, b := start(t, &Pod{subtree: s, name: filepath.Base(unit)}, "", "sleep"), start(t, &Pod{subtree: s, name: filepath.Base(unit)}, "", "sleep")
	_, err := inner.CreatePod("pod", Limits{}, []int{a.Process.Pid})
	var not *NotDelegated
	if !errors.As(err, &not) {
		t.Errorf("with a stranger: %v", err)
	}
	p, err := inner.CreatePod("pod", Limits{}, []int{a.Process.Pid, b.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d\n%d", a.Process.Pid, b.Process.Pid)
	if got := files(t, unit+"/"+delegation.Leaf, "cgroup.procs")["cgroup.procs"]; got != want {
		t.Errorf("the leaf holds %q, want %q", got, want)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	for _, cmd := range []*exec.Cmd{a, b} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the pod's end took a process of the leaf: %v", err)
		}
	}
	if err := kill(unit); err != nil {
		t.Fatal(err)
	}
	killed(t, a)
	killed(t, b)
}
