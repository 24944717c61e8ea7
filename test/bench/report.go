package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what bin/bench.json holds. Times are in milliseconds.
type report struct {
	When   time.Time `json:"when"`
	Took   string    `json:"took"`
	CPUs   int       `json:"cpus"`
	Kernel string    `json:"kernel"`
	Rounds int       `json:"rounds"`
	Podman string    `json:"podmanFlags"`

	PodmanVersion string `json:"podmanVersion"`

	Times  map[string]map[string]summary   `json:"times"`  // by task, then engine
	Memory map[string]map[string]footprint `json:"memory"` // by pod, then engine
	Costs  *cost                           `json:"costs"`
	Starts map[string]summary              `json:"starts,omitempty"` // startTask, by who starts
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
	s := summary{All: make([]float64, len(times))}
	for i, t := range times {
		s.All[i] = float64(t.Microseconds()) / 1000
	}
	sorted := slices.Sorted(slices.Values(s.All))
	if n := len(sorted); n > 0 {
		s.Min, s.Max = sorted[0], sorted[n-1]
		s.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
	}
	return s
}

func (m measured) report(sides []engine, rounds int, took time.Duration) report {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	r := report{
		When: time.Now().UTC().Truncate(time.Second), Took: took.Round(time.Second).String(),
		CPUs: runtime.NumCPU(), Kernel: strings.TrimSpace(string(kernel)), Rounds: rounds,
		Times: map[string]map[string]summary{}, Memory: map[string]map[string]footprint{},
	}
	for _, e := range sides {
		if p, ok := e.(*podman); ok {
			r.Podman = strings.Join(p.flags, " ")
		}
		f := m[e.name()]
		if f == nil { // pods were not measured
			continue
		}
		for task, times := range f.times {
			put(r.Times, task, e.name(), summarise(times))
		}
		for pod, foot := range f.feet {
			put(r.Memory, pod, e.name(), foot)
		}
	}
	return r
}

func put[V any](m map[string]map[string]V, row, column string, v V) {
	if m[row] == nil {
		m[row] = map[string]V{}
	}
	m[row][column] = v
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d rounds in %s, %d CPUs, kernel %s; podman %s\n\n", r.Rounds, r.Took, r.CPUs, r.Kernel, r.Podman)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	if len(r.Times) > 0 {
		fmt.Fprintln(w, "ms: min / median / max\tpodrun\tpodman\tratio\t")
	}
	for _, task := range slices.Sorted(maps.Keys(r.Times)) {
		a, b := r.Times[task]["podrun"], r.Times[task]["podman"]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f (1/%.1f)\t\n", task, a, b, a.Median/b.Median, b.Median/a.Median)
	}
	if len(r.Memory) > 0 {
		fmt.Fprintln(w, "\t\t\t\t")
		fmt.Fprintln(w, "the engine's own, per pod\tpodrun\tpodman\tratio\t")
	}
	for _, pod := range slices.Sorted(maps.Keys(r.Memory)) {
		a, b := r.Memory[pod]["podrun"], r.Memory[pod]["podman"]
		fmt.Fprintf(w, "processes, %s\t%d\t%d\t%.2f\t\n", pod, a.Processes, b.Processes, float64(a.Processes)/float64(b.Processes))
		fmt.Fprintf(w, "PSS in KiB, %s\t%s\t%s\t%.2f\t\n", pod, a.memory(), b.memory(), float64(a.PSS)/float64(b.PSS))
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
			fmt.Fprintf(out, "%s, %s: %s\n", pod, engine, strings.Join(r.Memory[pod][engine].Names, " "))
		}
	}
}

func (s summary) String() string { return fmt.Sprintf("%.0f / %.0f / %.0f", s.Min, s.Median, s.Max) }

func (f footprint) memory() string {
	if f.Unreadable > 0 {
		return fmt.Sprintf("%d + %d unreadable", f.PSS, f.Unreadable)
	}
	return fmt.Sprint(f.PSS)
}

func (r report) save(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
