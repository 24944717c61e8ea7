package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The plot has a row for each ratio, on a scale of logarithms from 1/200 to 20.
const (
	plotRow   = 22
	plotLeft  = 330
	plotRight = 560 // width of the scale
	plotTop   = 60
	plotFrom  = 1. / 200
	plotTo    = 20.
)

func plotX(v float64) float64 {
	v = min(max(v, plotFrom), plotTo)
	return plotLeft + plotRight*math.Log(v/plotFrom)/math.Log(plotTo/plotFrom)
}

// plot draws ratios: a bar from 1 to the left is podrun being so much quicker or smaller.
func plot(title string, list []ratio) string {
	var b strings.Builder
	height := plotTop + plotRow*len(list) + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotLeft+plotRight+70, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="20" font-size="15">%s</text>`+"\n", html.EscapeString(title))
	for _, at := range []float64{1. / 100, 1. / 10, 1, 10} {
		x := plotX(at)
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%d" y2="%d" stroke="#ccc"/><text x="%.0f" y="%d" text-anchor="middle" fill="#666">%s</text>`+"\n",
			x, x, plotTop-8, height-20, x, plotTop-14, fraction(at))
	}
	for i, r := range list {
		y := plotTop + plotRow*i
		from, to := min(plotX(1), plotX(r.Value)), max(plotX(1), plotX(r.Value))
		fill := "#4a7" // reached, or nothing to reach
		if r.Bar > 0 && r.Value > r.Bar {
			fill = "#d83"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			plotLeft-8, y+12, html.EscapeString(r.Name), from, y, max(to-from, 1), plotRow-8, fill, plotLeft+plotRight+6, y+12, fraction(r.Value))
		if r.Bar > 0 {
			x := plotX(r.Bar)
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000" stroke-width="2"/>`+"\n", x, x, y-3, y+plotRow-5)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// write makes the page and its plot.
func (r report) write(dir string) error {
	list := r.ratios()
	title := fmt.Sprintf("podrun's part of what podman takes: %d rounds, %d CPUs, kernel %s, %s", r.Rounds, r.CPUs, r.Kernel, r.When.Format("2006-01-02"))
	if err := os.WriteFile(filepath.Join(dir, "bench.svg"), []byte(plot(title, list)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.md"), []byte(r.page(list)), 0o644)
}

func (r report) page(list []ratio) string {
	var b strings.Builder
	b.WriteString("# How quick it is\n\n<!-- written by `make bench` -->\n\n")
	fmt.Fprintf(&b, "Measured by `make bench` on %s, %d rounds in %s, %d CPUs, kernel %s; podrun and podman (%s)\nin turn, so that what else the machine did met both. Times are min / median / max in ms. A bar that is\nnot reached is orange.\n\n![ratios](bench.svg)\n\n",
		r.When.Format("2006-01-02"), r.Rounds, r.Took, r.CPUs, r.Kernel, strings.TrimSpace(r.PodmanVersion+" "+r.Podman))
	b.WriteString("| | podrun | podman | ratio | to be reached |\n|---|---|---|---|---|\n")
	for _, x := range list {
		a, p := "", ""
		if by, ok := r.Times[x.Name]; ok {
			a, p = by["podrun"].String(), by["podman"].String()
		} else if by, ok := r.Memory[strings.TrimPrefix(x.Name, "PSS, ")]; ok {
			a, p = by["podrun"].memory()+" KiB", by["podman"].memory()+" KiB"
		}
		bar := ""
		if x.Bar > 0 {
			bar = fraction(x.Bar)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", x.Name, a, p, fraction(x.Value), bar)
	}
	if s := r.Starts; len(s) > 0 {
		b.WriteString("\nFrom the order to start a container until its program runs (podrun: from the end of an init container to\nthe next one's program; crun with its own start; the floor is a C program that makes the same namespaces and mounts):\n")
		for _, name := range []string{"podrun", "crun", "floor"} {
			if one, ok := s[name]; ok {
				fmt.Fprintf(&b, "%s %.1f / %.1f / %.1f ms. ", name, one.Min, one.Median, one.Max)
			}
		}
		b.WriteString("\n")
	}
	if s := r.Scale; s != nil {
		fmt.Fprintf(&b, "\n%d pods with %d containers: `up` of pod 2 took %.0f ms, of pod %d %.0f; at rest, each probed every 10 s, they took\n%.2f %% of a processor; podrun's own memory (PSS):", s.Pods, s.Containers, s.First, s.Pods+1, s.Last, s.IdleCPU)
		for _, at := range psAt {
			if pss, ok := s.PSS[at]; ok {
				fmt.Fprintf(&b, " %d pods %.1f MB,", at, float64(pss)/1024)
			}
		}
		text := strings.TrimSuffix(b.String(), ",")
		return text + ".\n"
	}
	return b.String()
}
