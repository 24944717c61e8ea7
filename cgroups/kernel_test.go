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
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/testenv"
)

// subtree is the real one, or the test is skipped with the reason.
func subtree(t *testing.T) Subtree {
	t.Helper()
	testenv.NoLeaks(t)
	var s Subtree
	testenv.NeedVM(t, func() (err error) {
		if s, err = Delegated(); err != nil {
			return err
		}
		return delegation.Subtree(s).Lacks("cpu", "memory", "pids")
	})
	return s
}

func createPod(t *testing.T, s Subtree, l Limits) *Pod {
	t.Helper()
	p, err := s.CreatePod(podName(t), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
		gone(t, p.Path())
	})
	return p
}

func podName(t *testing.T) string {
	return fmt.Sprintf("podrun-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// files reads what the kernel says the values are.
func files(t *testing.T, dir string, names ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = strings.TrimSuffix(string(b), "\n")
	}
	return got
}

func play(part string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partEnv+"="+part)
	return cmd
}

// start runs a part in a child cgroup of the pod, as a container would.
func start(t *testing.T, p *Pod, container, part string) *exec.Cmd {
	t.Helper()
	cmd := play(part)
	enter(t, p, container, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func enter(t *testing.T, p *Pod, container string, cmd *exec.Cmd) {
	t.Helper()
	dir := delegation.Mount + p.ContainerPath(container)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: syscall.SIGKILL}
}

// killed waits for the process's end by SIGKILL.
func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatal("the process was not killed in a minute")
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("the process ended with %v, not by SIGKILL", err)
	}
}

var valueFiles = []string{"cpu.weight", "cpu.max", "memory.max", "memory.low", "memory.oom.group", "pids.max", "cgroup.subtree_control", "cgroup.max.descendants"}

func TestPodHasItsValues(t *testing.T) {
	s := subtree(t)
	common := map[string]string{"memory.oom.group": "0", "pids.max": "2048", "cgroup.subtree_control": "cpu memory pids", "cgroup.max.descendants": "1024"}
	for _, tt := range []struct {
		name string
		in   Limits
		want map[string]string
	}{
		{"first worked case", Limits{CPURequest: 100, CPULimit: 100, MemoryRequest: 2200 * mi, MemoryLimit: 2200 * mi},
			map[string]string{"cpu.weight": "17", "cpu.max": "10000 100000", "memory.max": "2306867200", "memory.low": "2306867200"}},
		{"second worked case", Limits{CPURequest: 10, CPULimit: 100, MemoryRequest: 1100 * mi, MemoryLimit: 1100 * mi},
			map[string]string{"cpu.weight": "4", "cpu.max": "10000 100000", "memory.max": "1153433600", "memory.low": "1153433600"}},
		{"no limits", Limits{},
			map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "memory.low": "0"}},
		{"the largest numbers", Limits{CPULimit: 1 << 62, MemoryLimit: 1 << 62, Pids: 100},
			map[string]string{"cpu.weight": "10000", "cpu.max": "8796093022208 100000", "memory.max": "4611686018427387904", "memory.low": "0", "pids.max": "100"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := createPod(t, s, tt.in)
			for k, v := range common {
				if _, ok := tt.want[k]; !ok {
					tt.want[k] = v
				}
			}
			if diff := cmp.Diff(tt.want, files(t, p.Path(), valueFiles...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdateGivesAndTakesLimits(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	names := []string{"cpu.weight", "cpu.max", "memory.max", "memory.low", "memory.swap.max", "pids.max"}
	for _, step := range []struct {
		in   Limits
		want map[string]string
	}{
		{Limits{CPULimit: 1500, MemoryLimit: 64 * mi, Pids: 50},
			map[string]string{"cpu.weight": "138", "cpu.max": "150000 100000", "memory.max": "67108864", "memory.low": "0", "memory.swap.max": "0", "pids.max": "50"}},
		{Limits{CPURequest: 500, MemoryRequest: 32 * mi, MemoryLimit: 128 * mi},
			map[string]string{"cpu.weight": "59", "cpu.max": "max 100000", "memory.max": "134217728", "memory.low": "33554432", "memory.swap.max": "0", "pids.max": "2048"}},
		{Limits{},
			map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "memory.low": "0", "memory.swap.max": "max", "pids.max": "2048"}},
	} {
		if err := p.Update(step.in); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, files(t, p.Path(), names...)); diff != "" {
			t.Errorf("after %+v: %s", step.in, diff)
		}
	}
}

func TestOOM(t *testing.T) {
	s := subtree(t)
	for name, limit := range map[string]string{"by the pod's limit": "max", "by the container's": "25165824"} {
		t.Run(name, func(t *testing.T) {
			p := createPod(t, s, Limits{MemoryLimit: 48 * mi})
			bystander := start(t, p, "other", "sleep")
			cmd := play("hog")
			enter(t, p, "web", cmd)
			web := delegation.Mount + p.ContainerPath("web")
			for file, value := range map[string]string{"memory.max": limit, "memory.oom.group": "1"} {
				if err := delegation.Write(web, file, value); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killed(t, cmd)
			got := map[string]bool{}
			for _, container := range []string{"web", "other", "none", ""} {
				n, err := p.OOMKills(container)
				if err != nil {
					t.Fatal(err)
				}
				got[container] = n > 0
			}
			if diff := cmp.Diff(map[string]bool{"web": true, "other": false, "none": false, "": true}, got); diff != "" {
				t.Error(diff)
			}
			if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the other container: %v", err)
			}
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			killed(t, bystander)
		})
	}
}

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
	// Its children fell to us, the first process of the namespace.
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
