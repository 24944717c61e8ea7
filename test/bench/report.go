package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/podrun/podrun/test/internal/measure"
)

// report is the content of bin/bench.json. Times are in milliseconds.
type report struct {
	When   time.Time `json:"when"`
	Took   string    `json:"took"`
	CPUs   int       `json:"cpus"`
	Kernel string    `json:"kernel"`
	Rounds int       `json:"rounds"`
	Podman string    `json:"podmanFlags"`

	PodmanVersion  string  `json:"podmanVersion"`
	RuntimeVersion string  `json:"runtimeVersion,omitempty"`
	PodmanIdled    float64 `json:"podmanIdledSeconds,omitempty"` // in all of its starts, not counted: see idlePatience

	Load string `json:"load"` // of the machine at the beginning

	InMemory bool `json:"inMemory"` // the runtime directories were on a tmpfs, as a service manager has them

	Times  map[string]map[string]summary   `json:"times"`             // by task, then engine
	Calls  map[string]map[string]int       `json:"calls"`             // the system calls of tasks, by task, then engine
	Memory map[string]map[string]footprint `json:"memory"`            // by pod, then engine
	Read   map[string]map[string]summary   `json:"readMiB,omitempty"` // from a cold disk, by command, then engine
	Costs  *cost                           `json:"costs"`
	Starts map[string]summary              `json:"starts,omitempty"` // until a program runs, by the starting program and, for podrun's, by kind
	Scale  *scale                          `json:"scale,omitempty"`
	Images *imageCost                      `json:"images"`
}

type summary struct {
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
	All    []float64 `json:"all"`
}

func summarise(times []time.Duration) summary {
	all := make([]float64, len(times))
	for i, t := range times {
		all[i] = measure.Milliseconds(t)
	}
	return summaryOf(all)
}

func summaryOf(all []float64) summary {
	s := summary{All: all}
	if len(all) > 0 {
		s.Min, s.Median, s.Max = slices.Min(all), measure.Median(all), slices.Max(all)
	}
	return s
}

// newReport returns a report of the machine, without figures.
func (b *bench) newReport() report {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _ := b.peer.version().Output()
	return report{
		When: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Kernel: strings.TrimSpace(string(kernel)), Rounds: b.rounds,
		Podman: b.peer.flags.String(), PodmanVersion: strings.TrimSpace(string(version)), RuntimeVersion: b.peer.runtimeVersion(),
		Load: loadNow(), InMemory: b.user.memory != "",
		Times: map[string]map[string]summary{}, Calls: map[string]map[string]int{}, Memory: map[string]map[string]footprint{}, Read: map[string]map[string]summary{},
	}
}

func (r *report) add(m measured) {
	for engine, f := range m {
		r.PodmanIdled += f.idled.Seconds()
		for task, times := range f.times {
			put(r.Times, task, engine, summarise(times))
		}
		for task, n := range f.calls {
			put(r.Calls, task, engine, n)
		}
		for pod, foot := range f.footprints {
			put(r.Memory, pod, engine, foot)
		}
	}
}

func put[V any](m map[string]map[string]V, row, column string, v V) {
	if m[row] == nil {
		m[row] = map[string]V{}
	}
	m[row][column] = v
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d rounds in %s, %d CPUs, kernel %s, load %s; podman %s\n\n", r.Rounds, r.Took, r.CPUs, r.Kernel, r.Load, r.Podman)
	w := measure.Columns(out)
	if len(r.Times) > 0 {
		fmt.Fprintln(w, "ms: min / median / max\tpodrun\tpodman\tratio\tsystem calls\t")
	}
	for _, task := range slices.Sorted(maps.Keys(r.Times)) {
		a, b := r.Times[task]["podrun"], r.Times[task]["podman"]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", task, a, b, quotient(a.Median, b.Median), r.calls(task))
	}
	for _, command := range slices.Sorted(maps.Keys(r.Read)) {
		a, b := r.Read[command]["podrun"], r.Read[command]["podman"]
		fmt.Fprintf(w, "MiB %s%s\t%s\t%s\t%s\t\t\n", readOf, command, a, b, quotient(a.Median, b.Median))
	}
	if len(r.Memory) > 0 {
		fmt.Fprintln(w, "\t\t\t\t")
		fmt.Fprintln(w, "the engine's own, per pod\tpodrun\tpodman\tratio\t")
	}
	for _, pod := range slices.Sorted(maps.Keys(r.Memory)) {
		a, b := r.Memory[pod]["podrun"], r.Memory[pod]["podman"]
		fmt.Fprintf(w, "processes, %s\t%d\t%d\t%s\t\n", pod, a.Processes, b.Processes, quotient(float64(a.Processes), float64(b.Processes)))
		fmt.Fprintf(w, "PSS in KiB, %s\t%s\t%s\t%s\t\n", pod, a.memory(), b.memory(), quotient(float64(a.PSS), float64(b.PSS)))
	}
	if r.Costs != nil {
		for _, line := range r.Costs.lines() {
			fmt.Fprintln(w, line)
		}
	}
	for _, line := range slices.Concat(r.startLines(), r.Scale.lines()) {
		fmt.Fprintln(w, line)
	}
	if r.Images != nil {
		for _, line := range r.Images.lines() {
			fmt.Fprintln(w, line)
		}
	}
	w.Flush()
	for _, pod := range slices.Sorted(maps.Keys(r.Memory)) {
		for _, engine := range slices.Sorted(maps.Keys(r.Memory[pod])) {
			fmt.Fprintf(out, "%s, %s: %s\n", pod, engine, r.Memory[pod][engine])
		}
	}
}

// String returns "" for a quantity that was not measured. Small figures have decimals.
func (s summary) String() string {
	decimals := 0
	switch {
	case s.Median == 0:
		return ""
	case s.Median < 1:
		decimals = 2
	case s.Median < 20:
		decimals = 1
	}
	return fmt.Sprintf("%.*f / %.*f / %.*f", decimals, s.Min, decimals, s.Median, decimals, s.Max)
}

// String lists every program with the number of its processes and their total memory.
func (f footprint) String() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.Each)) {
		list = append(list, fmt.Sprintf("%d %s %d KiB", f.Each[name].Processes, name, f.Each[name].PSS))
	}
	return strings.Join(list, ", ")
}

func (f footprint) memory() string {
	if f.Unreadable > 0 {
		return fmt.Sprintf("%d + %d unreadable", f.PSS, f.Unreadable)
	}
	return fmt.Sprint(f.PSS)
}

// calls returns a task's system calls, "podrun's / podman's", or "" if they were not counted.
func (r report) calls(task string) string {
	by := r.Calls[task]
	if by["podrun"] == 0 || by["podman"] == 0 {
		return ""
	}
	return fmt.Sprintf("%d / %d", by["podrun"], by["podman"])
}

// quotient formats a ratio for the tables, or returns "" if one side was not measured.
func quotient(a, b float64) string {
	if a <= 0 || b <= 0 {
		return ""
	}
	if a > b {
		return fmt.Sprintf("%.2f", a/b)
	}
	return fmt.Sprintf("%.2f (1/%.1f)", a/b, b/a)
}

// figure returns "" for a quantity that was not measured.
func figure(v float64) string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", v)
}
