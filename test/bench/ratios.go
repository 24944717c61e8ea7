package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// worse is by how much a ratio may grow before it is called a regression: what machines and
// their other work do to single figures is in both sides of a ratio.
const worse = 1.20

// ratio is what podrun takes of what it is held against, and what it is to reach.
type ratio struct {
	Name  string
	Value float64
	Bar   float64 // 0: none
}

// bars are those that podrun sets itself, by the names of ratios.
var bars = map[string]float64{
	"up, 1 container": 1. / 10, "up, 1 init + 2 apps": 1. / 10, "up, 2 init + 8 apps": 1. / 10,
	"down, 1 container": 1. / 10, "down, 1 init + 2 apps": 1. / 10, "down, 2 init + 8 apps": 1. / 10,
	"exec true": 1. / 12, "logs": 1. / 5, "ps, 50 pods": 1. / 5,
	"CPU of a probe, exec true": 1. / 50, "CPU of a probe, httpGet": 1. / 50,
	"PSS, 1 init + 2 apps, just started": 1. / 3, "PSS, 1 init + 2 apps, idle": 1. / 3,
	"start to exec, of the floor's": 7, "pod 101, of pod 2's": 1.2,
}

// ratios are all there are, by name.
func (r report) ratios() []ratio {
	found := map[string]float64{}
	add := func(name string, a, b float64) {
		if a > 0 && b > 0 {
			found[name] = a / b
		}
	}
	for task, by := range r.Times {
		add(task, by["podrun"].Median, by["podman"].Median)
	}
	for pod, by := range r.Memory {
		add("PSS, "+pod, float64(by["podrun"].PSS), float64(by["podman"].PSS))
	}
	if r.Costs != nil {
		for kind, by := range r.Costs.Probe {
			add("CPU of a probe, "+kind, by["podrun"], by["podman"])
		}
	}
	if r.Images != nil {
		for task, by := range r.Images.Pulls {
			add(task+" of 150 MB, time", by["podrun"].Milliseconds, by["podman"].Milliseconds)
			add(task+" of 150 MB, PSS", float64(by["podrun"].PSS), float64(by["podman"].PSS))
		}
	}
	for name, s := range r.Starts {
		if name != "podrun" {
			add(startTask+", of the "+name+"'s", r.Starts["podrun"].Median, s.Median)
		}
	}
	if r.Scale != nil {
		add(fmt.Sprintf("pod %d, of pod 2's", r.Scale.Pods+1), r.Scale.Last, r.Scale.First)
	}
	var list []ratio
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, ratio{name, found[name], bars[name]})
	}
	return list
}

// compare tells how ratios have changed, the worst first, and which by more than worse.
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
		case c > worse:
			mark = "WORSE"
			regressions++
		case c < 1/worse:
			mark = "better"
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%+.0f %%\t%s\t", r.Name, fraction(before[r.Name]), fraction(r.Value), 100*(c-1), mark))
	}
	return lines, regressions
}

// fraction writes a ratio as people say it: 1/12, or 1.2.
func fraction(v float64) string {
	if v < 0.75 {
		return fmt.Sprintf("1/%s", strings.TrimSuffix(fmt.Sprintf("%.1f", 1/v), ".0"))
	}
	return fmt.Sprintf("%.2f", v)
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

func (r report) startLines() (lines []string) {
	if len(r.Starts) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Starts)) {
		s := r.Starts[name]
		lines = append(lines, fmt.Sprintf("%s in ms, %s\t%.1f / %.1f / %.1f\t\tpodrun's is %.1f times\t", startTask, name, s.Min, s.Median, s.Max, r.Starts["podrun"].Median/s.Median))
	}
	return lines
}
