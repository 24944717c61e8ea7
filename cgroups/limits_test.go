package cgroups

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/google/go-cmp/cmp"
)

const mi = 1 << 20

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Limits
		want Values
	}{
		{"nothing set: the least weight, no limit", Limits{}, Values{CPUWeight: 1}},
		{"the first worked case: limits 100m and 2200Mi, requests like them",
			Limits{CPURequest: 100, CPULimit: 100, MemoryLimit: 2200 * mi},
			Values{CPUWeight: 17, CPUQuota: 10_000, MemoryMax: 2_306_867_200}},
		{"the second worked case: requests 10m and 1100Mi, limits 100m and 1100Mi",
			Limits{CPURequest: 10, CPULimit: 100, MemoryLimit: 1100 * mi},
			Values{CPUWeight: 4, CPUQuota: 10_000, MemoryMax: 1_153_433_600}},
		{"a limit without a request is the request", Limits{CPULimit: 1000}, Values{CPUWeight: 100, CPUQuota: 100_000}},
		{"a request without a limit", Limits{CPURequest: 1000}, Values{CPUWeight: 100}},
		{"two CPUs", Limits{CPURequest: 2000, CPULimit: 2500}, Values{CPUWeight: 174, CPUQuota: 250_000}},
		{"the least CPU limit there is", Limits{CPURequest: 1, CPULimit: 1}, Values{CPUWeight: 1, CPUQuota: 1000}},
		{"below the least quota", Limits{CPULimit: 9}, Values{CPUWeight: 3, CPUQuota: 1000}},
		{"just above it", Limits{CPULimit: 11}, Values{CPUWeight: 4, CPUQuota: 1100}},
		{"the least number of shares", Limits{CPURequest: 2}, Values{CPUWeight: 1}},
		{"256 CPUs: the most shares", Limits{CPURequest: 256_000}, Values{CPUWeight: 10_000}},
		{"numbers beyond any machine", Limits{CPURequest: math.MaxInt64, CPULimit: math.MaxInt64, MemoryLimit: math.MaxInt64},
			Values{CPUWeight: 10_000, CPUQuota: 1 << 43, MemoryMax: math.MaxInt64}},
		{"processes", Limits{Pids: 7}, Values{CPUWeight: 1, PidsMax: 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.CPUPeriod, tt.want.OOMGroup = 100_000, true
			if diff := cmp.Diff(tt.want, tt.in.Values()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMoreCPUIsNeverLess(t *testing.T) {
	var before Values
	for milli := int64(1); milli < 300_000; milli += 7 {
		v := Limits{CPURequest: milli, CPULimit: milli}.Values()
		if v.CPUWeight < before.CPUWeight || v.CPUQuota < before.CPUQuota {
			t.Fatalf("%d millicores give %+v, fewer gave %+v", milli, v, before)
		}
		before = v
	}
}

func TestFiles(t *testing.T) {
	all := func(string) bool { return true }
	for _, tt := range []struct {
		name string
		in   Limits
		has  func(string) bool
		want map[string]string
	}{
		{"everything", Limits{CPURequest: 10, CPULimit: 100, MemoryMin: 1, MemoryLow: 2, MemoryHigh: 3, MemoryLimit: 2 * mi, Pids: 9}, all, map[string]string{
			"cpu.weight": "4", "cpu.max": "10000 100000", "memory.min": "1", "memory.low": "2", "memory.high": "3", "memory.max": "2097152", "memory.oom.group": "1", "pids.max": "9"}},
		{"nothing", Limits{}, all, map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.oom.group": "1"}},
		{"a board without the memory controller", Limits{CPULimit: 100, MemoryLimit: 2 * mi, Pids: 9}, func(c string) bool { return c != "memory" },
			map[string]string{"cpu.weight": "17", "cpu.max": "10000 100000", "pids.max": "9"}},
		{"no controllers", Limits{CPULimit: 100, MemoryLimit: 2 * mi, Pids: 9}, func(string) bool { return false }, map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.in.Values().files(tt.has)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestResources writes through the library into a plain directory: the values that a subtree with
// those controllers would get.
func TestResources(t *testing.T) {
	second := Limits{CPURequest: 10, CPULimit: 100, MemoryLimit: 1100 * mi}
	for _, tt := range []struct {
		name        string
		in          Limits
		controllers []string
		want        map[string]string
	}{
		{"all controllers", second, []string{"cpu", "memory", "pids"}, map[string]string{
			"cpu.weight": "4", "cpu.max": "10000 100000", "memory.max": "1153433600", "memory.min": "0", "memory.low": "0", "pids.max": "2048"}},
		{"no limits", Limits{}, []string{"cpu", "memory", "pids"}, map[string]string{
			"cpu.weight": "1", "cpu.max": "max 100000", "memory.min": "0", "memory.low": "0", "pids.max": "2048"}},
		{"a board without the memory controller", second, []string{"cpu", "pids"}, map[string]string{
			"cpu.weight": "4", "cpu.max": "10000 100000", "pids.max": "2048"}},
		{"a number of processes", Limits{Pids: 9}, []string{"pids"}, map[string]string{"pids.max": "9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m, err := cgroup2.Load("/", cgroup2.WithMountpoint(dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Update(tt.in.pod().resources(Subtree{Controllers: tt.controllers})); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				b, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				got[f.Name()] = string(b)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
