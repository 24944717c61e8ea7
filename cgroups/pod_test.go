package cgroups

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/delegation"
)

var valueFiles = []string{"cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.low", "memory.high", "memory.oom.group", "pids.max", "cgroup.subtree_control", "cgroup.max.descendants"}

func TestPodHasItsValues(t *testing.T) {
	s := subtree(t)
	common := map[string]string{"memory.min": "0", "memory.high": "max", "memory.oom.group": "0", "pids.max": "2048", "cgroup.subtree_control": "cpu io memory pids", "cgroup.max.descendants": "1024"}
	for _, tt := range []struct {
		name string
		in   Limits
		want map[string]string
	}{
		{"first worked case", Limits{CPURequest: 100, CPULimit: 100, MemoryLimit: 2200 * mi},
			map[string]string{"cpu.weight": "17", "cpu.max": "10000 100000", "memory.max": "2306867200", "memory.low": "0"}},
		{"second worked case", Limits{CPURequest: 10, CPULimit: 100, MemoryLimit: 1100 * mi},
			map[string]string{"cpu.weight": "4", "cpu.max": "10000 100000", "memory.max": "1153433600", "memory.low": "0"}},
		{"no limits", Limits{},
			map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "memory.low": "0"}},
		{"memory QoS", Limits{MemoryMin: 4 * mi, MemoryLow: 8 * mi, MemoryHigh: 16 * mi, MemoryLimit: 32 * mi},
			map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "33554432", "memory.min": "4194304", "memory.low": "8388608", "memory.high": "16777216"}},
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

func TestContainerValuesAreTaken(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	for name, in := range map[string]Limits{
		"limited":   {CPURequest: 10, CPULimit: 100, MemoryMin: 1 * mi, MemoryLow: 2 * mi, MemoryHigh: 16 * mi, MemoryLimit: 32 * mi, Pids: 9},
		"unlimited": {},
	} {
		values := p.ContainerValues(in)
		dir := filepath.Join(p.Path(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, value := range values {
			if err := delegation.Write(dir, file, value); err != nil {
				t.Errorf("%s: write %q: %v", name, value, err)
			}
		}
		if diff := cmp.Diff(values, files(t, dir, slices.Collect(maps.Keys(values))...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, ok := values["memory.swap.max"]; ok != (in.MemoryLimit > 0) {
			t.Errorf("%s: %v", name, values)
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
			want := OOMContainer
			if limit == "max" {
				want = OOMPod
			}
			for container, want := range map[string]OOM{"web": want, "other": NoOOM, "none": NoOOM} {
				if reason, err := p.OOM(container); reason != want || err != nil {
					t.Errorf("container %s: %q, %v, want %q", container, reason, err, want)
				}
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
