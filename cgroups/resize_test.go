package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The kubelet's order (doPodResizeAction), which is not observable from outside.
func TestOrderOfAResize(t *testing.T) {
	values := func(text string) map[string]string {
		m := map[string]string{}
		for _, f := range strings.Fields(text) {
			k, v, _ := strings.Cut(f, "=")
			m[k] = strings.ReplaceAll(v, "/", " ")
		}
		return m
	}
	for _, tt := range []struct{ name, pod, podWant, c, cWant, order string }{
		{"what grows, grows for the pod first",
			"memory.max=10 cpu.max=1000/9 cpu.weight=1", "memory.max=20 cpu.max=2000/9 cpu.weight=2",
			"memory.max=10 cpu.max=1000/9 cpu.weight=1", "memory.max=20 cpu.max=2000/9 cpu.weight=2",
			"/memory.max=20 c/memory.max=20 /cpu.max=2000 /cpu.weight=2 c/cpu.max=2000 c/cpu.weight=2"},
		{"what shrinks, shrinks for the containers first, and requests before limits",
			"memory.max=20 cpu.max=2000/9 cpu.weight=2", "memory.max=10 cpu.max=1000/9 cpu.weight=1",
			"memory.max=20 cpu.max=2000/9 cpu.weight=2", "memory.max=10 cpu.max=1000/9 cpu.weight=1",
			"c/memory.max=10 /memory.max=10 c/cpu.max=1000 c/cpu.weight=1 /cpu.weight=1 /cpu.max=1000"},
		{"no limit is the highest",
			"memory.max=20 memory.swap.max=0 cpu.max=max/9", "memory.max=max memory.swap.max=max cpu.max=1000/9",
			"memory.max=20 cpu.max=max/9", "memory.max=max cpu.max=1000/9",
			"/memory.max=max /memory.swap.max=max c/memory.max=max c/cpu.max=1000 /cpu.max=1000"},
		{"one may grow while the other shrinks",
			"memory.max=20 cpu.max=1000/9 cpu.weight=9", "memory.max=10 cpu.max=2000/9 cpu.weight=8",
			"memory.max=20", "memory.max=10",
			"c/memory.max=10 /memory.max=10 /cpu.max=2000 /cpu.weight=8"},
		{"what is right is not written", "memory.max=10 cpu.weight=1", "memory.max=10 cpu.weight=1", "memory.low=0", "memory.low=5", "c/memory.low=5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			pod := &node{has: values(tt.pod), want: values(tt.podWant)}
			for _, w := range order(pod, []*node{{name: "c", dir: "c", has: values(tt.c), want: values(tt.cWant)}}) {
				value, _, _ := strings.Cut(w.value, " ")
				got = append(got, w.dir+"/"+w.file+"="+value)
			}
			if diff := cmp.Diff(tt.order, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResizeOfAPodAndItsContainer(t *testing.T) {
	p := createPod(t, subtree(t), Limits{})
	web := start(t, p, "web", "sleep")
	names := []string{"cpu.weight", "cpu.max", "memory.max", "memory.low", "memory.swap.max", "pids.max"}
	for _, step := range []struct {
		pod, web         Limits
		wantPod, wantWeb string
	}{
		{Limits{CPULimit: 1500, MemoryLimit: 64 * mi}, Limits{CPULimit: 500, MemoryLimit: 60 * mi},
			"138, 150000 100000, 67108864, 0, 0, 2048", "59, 50000 100000, 62914560, 0, 0, max"},
		{Limits{CPURequest: 500, MemoryLow: 32 * mi, MemoryLimit: 128 * mi}, Limits{CPURequest: 500, MemoryLow: 32 * mi},
			"59, max 100000, 134217728, 33554432, 0, 2048", "59, max 100000, max, 33554432, max, max"},
		{Limits{}, Limits{}, "1, max 100000, max, 0, max, 2048", "1, max 100000, max, 0, max, max"},
	} {
		// A container that does not run is skipped.
		if err := p.Resize(step.pod, map[string]Limits{"web": step.web, "gone": step.web}); err != nil {
			t.Fatal(err)
		}
		for dir, want := range map[string]string{"": step.wantPod, "web": step.wantWeb} {
			got := files(t, filepath.Join(p.Path(), dir), names...)
			var text []string
			for _, name := range names {
				text = append(text, got[name])
			}
			if diff := cmp.Diff(want, strings.Join(text, ", ")); diff != "" {
				t.Errorf("%q after %+v: %s", dir, step, diff)
			}
		}
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	killed(t, web)
}

func TestResizeBelowWhatIsInUse(t *testing.T) {
	p := createPod(t, subtree(t), Limits{MemoryLimit: 64 * mi})
	web := start(t, p, "web", "sleep")
	err := p.Resize(Limits{MemoryLimit: 4096, CPULimit: 100}, map[string]Limits{"web": {MemoryLimit: 8192}})
	var below *BelowUse
	if !errors.As(err, &below) || len(below.Limits) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"cannot decrease memory limits: [attempting to set pod memory limit (4096) below current usage (",
		`attempting to set container "web" memory limit (8192) below current usage (`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if got := files(t, p.Path(), "memory.max", "cpu.max"); got["memory.max"] != fmt.Sprint(64*mi) || got["cpu.max"] != "max 100000" {
		t.Errorf("something was changed: %v", got)
	}
	if _, err := os.Stat(p.Path()); err != nil {
		t.Error(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	killed(t, web)
}
