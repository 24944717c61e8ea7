package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// regressionFactor is by how much a ratio may grow before it counts as a regression: the effects of
// the machine and its other load are in both sides of a ratio.
const regressionFactor = 1.20

// ratio is podrun's cost relative to another engine's, and its target.
type ratio struct {
	Name         string
	Value        float64
	Target       float64 // 0: none
	Bar          string  // the target as text
	Ours, Theirs string  // the figures
}

func (r ratio) missed() bool { return r.Target > 0 && r.Value > r.Target }

// target is podrun's own, beside podman 5.8 with crun and pasta: a ratio, or else a figure in the unit of the row.
type target struct {
	ratio  float64
	figure float64
	unit   string
}

// targets are by the names of ratios.
var targets = map[string]target{
	lifeTask(shapes[0]): {ratio: 1 / 4.4}, lifeTask(shapes[1]): {ratio: 1 / 5.5}, lifeTask(shapes[2]): {ratio: 1 / 7.6},
	"up, 1 container": {ratio: 1 / 4.1}, "up, 1 init + 2 apps": {ratio: 1 / 5.6}, "up, 2 init + 8 apps": {ratio: 1. / 7},
	"down, 1 container": {ratio: 1. / 8}, "down, 1 init + 2 apps": {ratio: 1. / 8}, "down, 2 init + 8 apps": {ratio: 1. / 8},
	"exec true": {ratio: 1. / 15}, "logs": {ratio: 1. / 5}, "ps, 50 pods": {ratio: 1. / 5},
	execTask + resting: {figure: 9, unit: "ms"}, oneMoreTask: {figure: 6, unit: "ms"}, readOf + firstUp: {figure: 30, unit: "MiB"},
	"CPU of a probe, exec true": {ratio: 1. / 50}, "CPU of a probe, httpGet": {ratio: 1. / 50}, connectionCPU: {ratio: 1},
	"PSS, 1 init + 2 apps, just started": {ratio: 1. / 3}, "PSS, 1 init + 2 apps, idle": {ratio: 1. / 10},
	"start to exec, cold, relative to floor": {ratio: 7}, "start to exec, prepared, relative to floor": {ratio: 1.5},
	"start of pod 301 relative to pod 2": {ratio: 1.2}, atOnceTask: {ratio: 1. / 6},
}

// newRatio returns the ratio of figures, which are greater than 0, in the unit of the row.
func newRatio(name string, a, b float64, ours, theirs string) ratio {
	r := ratio{Name: name, Value: a / b, Ours: ours, Theirs: theirs}
	switch t := targets[name]; {
	case t.ratio > 0:
		r.Target, r.Bar = t.ratio, "at most "+fraction(t.ratio)
	case t.figure > 0:
		r.Target, r.Bar = t.figure/b, fmt.Sprintf("at most %g %s", t.figure, t.unit)
	}
	return r
}

// callsOf begins the name of a ratio of system calls.
const callsOf = "system calls, "

// ratios returns all ratios by name, after the headline, the processor time of lives.
func (r report) ratios() []ratio {
	var list []ratio
	add := func(name string, a, b float64, ours, theirs string) {
		if a > 0 && b > 0 {
			list = append(list, newRatio(name, a, b, ours, theirs))
		}
	}
	for task, by := range r.Times {
		add(task, by["podrun"].Median, by["podman"].Median, by["podrun"].String()+" ms", by["podman"].String()+" ms")
	}
	for task, by := range r.Calls {
		add(callsOf+task, float64(by["podrun"]), float64(by["podman"]), fmt.Sprint(by["podrun"]), fmt.Sprint(by["podman"]))
	}
	for pod, by := range r.Memory {
		add("PSS, "+pod, float64(by["podrun"].PSS), float64(by["podman"].PSS), by["podrun"].memory()+" KiB", by["podman"].memory()+" KiB")
	}
	for task, by := range r.Read {
		add(readOf+task, by["podrun"].Median, by["podman"].Median, by["podrun"].String()+" MiB", by["podman"].String()+" MiB")
	}
	if r.Costs != nil {
		for kind, by := range r.Costs.Probe {
			add("CPU of a probe, "+kind, by["podrun"], by["podman"], fmt.Sprintf("%.2f ms", by["podrun"]), fmt.Sprintf("%.1f ms", by["podman"]))
		}
	}
	if r.Images != nil {
		for task, by := range r.Images.Pulls {
			a, b := by["podrun"], by["podman"]
			add(task+" of 150 MB, time", a.Milliseconds, b.Milliseconds, figure(a.Milliseconds)+" ms", figure(b.Milliseconds)+" ms")
			add(task+" of 150 MB, PSS", float64(a.PSS), float64(b.PSS), fmt.Sprintf("%d KiB", a.PSS), fmt.Sprintf("%d KiB", b.PSS))
		}
	}
	r.startRatios(add)
	if s := r.Scale; s != nil {
		add(fmt.Sprintf("start of pod %d relative to pod 2", s.Pods+1), s.Many.Median, s.Few.Median, s.Many.String()+" ms", "podrun: "+s.Few.String()+" ms")
	}
	headline := func(r ratio) int {
		if strings.HasPrefix(r.Name, lifeOf) {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b ratio) int {
		return cmp.Or(cmp.Compare(headline(a), headline(b)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// compare returns how ratios have changed, the worst first, and how many by more than
// regressionFactor.
func compare(then, now []ratio) (lines []string, regressions int) {
	before := map[string]float64{}
	for _, r := range then {
		before[r.Name] = r.Value
	}
	now = slices.Clone(now)
	change := func(r ratio) float64 {
		if before[r.Name] == 0 {
			return 0
		}
		return r.Value / before[r.Name]
	}
	slices.SortStableFunc(now, func(a, b ratio) int { return cmp.Compare(change(b), change(a)) })
	for _, r := range now {
		c := change(r)
		mark := ""
		switch {
		case c == 0:
			continue // it was not measured then
		case c > regressionFactor:
			mark = "WORSE"
			regressions++
		case c < 1/regressionFactor:
			mark = "better"
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%+.0f %%\t%s\t", r.Name, fraction(before[r.Name]), fraction(r.Value), 100*(c-1), mark))
	}
	return lines, regressions
}

// fraction formats a ratio as 1/12, or 1.2.
func fraction(v float64) string {
	if v < 0.75 {
		return fmt.Sprintf("1/%s", strings.TrimSuffix(fmt.Sprintf("%.1f", 1/v), ".0"))
	}
	return fmt.Sprintf("%.2f", v)
}

// differences lists differences between two runs that change ratios: the changes are then printed,
// but do not count as regressions.
func differences(then, now report) (list []string) {
	for _, d := range []struct{ what, then, now string }{
		{"rounds", fmt.Sprint(then.Rounds), fmt.Sprint(now.Rounds)},
		{"CPUs", fmt.Sprint(then.CPUs), fmt.Sprint(now.CPUs)},
		{"kernel", then.Kernel, now.Kernel},
		{"runtime directories in memory:", fmt.Sprint(then.InMemory), fmt.Sprint(now.InMemory)},
		{"podman", then.PodmanVersion + " " + then.Podman, now.PodmanVersion + " " + now.Podman},
		{"runtime", cmp.Or(then.RuntimeVersion, "unknown"), cmp.Or(now.RuntimeVersion, "unknown")},
	} {
		if d.then != d.now {
			list = append(list, fmt.Sprintf("%s %s then, %s now", d.what, strings.TrimSpace(d.then), strings.TrimSpace(d.now)))
		}
	}
	a, err1 := strconv.ParseFloat(then.Load, 64)
	b, err2 := strconv.ParseFloat(now.Load, 64)
	if err1 != nil || err2 != nil || math.Abs(a-b) > 0.5 {
		list = append(list, fmt.Sprintf("load %s then, %s now", cmp.Or(then.Load, "unknown"), now.Load))
	}
	return list
}

func load(path string) (report, error) {
	var r report
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read figures: %w", err)
	}
	return r, nil
}
