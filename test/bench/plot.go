package main

import (
	"fmt"
	"html"
	"strings"
)

// pictured are the ratios in the picture.
var pictured = []struct{ name, label string }{
	{lifeTask(shapes[0]), "processor time of a life, 1 container"},
	{lifeTask(shapes[1]), "processor time of a life, 1 init + 2 apps"},
	{lifeTask(shapes[2]), "processor time of a life, 2 init + 8 apps"},
	{"up, " + shapes[1].title, "up, 1 init + 2 apps"},
	{execTask + resting, "exec in a pod at rest"},
	{"down, " + shapes[1].title + resting, "down of a pod at rest, 1 init + 2 apps"},
	{"PSS, " + shapes[1].title + ", idle", "memory of a pod at rest, 1 init + 2 apps"},
	{readOf + firstUp, "read from a cold disk by the first up"},
}

// The picture has a row for each ratio: a label, a bar, and the ratio as text.
const (
	plotRow   = 26
	plotLeft  = 300
	plotScale = 480 // width of what podman takes
	plotRight = 80
	plotTop   = 86
	plotChar  = 7 // width of a character of a label, more or less
)

// plot draws podrun's parts of what podman takes. A line marks a target.
func plot(subtitle string, list []ratio) string {
	by := map[string]ratio{}
	most := 1.
	for _, r := range list {
		by[r.Name] = r
	}
	rows := 0
	for _, p := range pictured {
		if r, measured := by[p.name]; measured {
			rows, most = rows+1, max(most, r.Value, r.Target)
		}
	}
	x := func(v float64) float64 { return plotLeft + plotScale*v/most }
	var b strings.Builder
	height := plotTop + plotRow*rows + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", plotLeft+plotScale+plotRight, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="22" font-size="15">podrun's part of what podman takes</text>`+"\n")
	fmt.Fprintf(&b, `<text x="10" y="42" fill="#666">%s; a line is a target, orange means missed</text>`+"\n", html.EscapeString(subtitle))
	for _, tick := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%d" y2="%d" stroke="#ccc"/><text x="%.0f" y="%d" text-anchor="middle" fill="#666">%.0f %%</text>`+"\n",
			x(tick), x(tick), plotTop-8, height-6, x(tick), plotTop-14, 100*tick)
	}
	y := plotTop
	for _, p := range pictured {
		r, measured := by[p.name]
		if !measured {
			continue
		}
		fill := "#4a7" // reached, or without a target
		if r.missed() {
			fill = "#d83"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.0f" y="%d">%s</text>`+"\n",
			plotLeft-10, y+13, html.EscapeString(p.label), plotLeft, y, x(r.Value)-plotLeft, plotRow-8, fill, x(max(r.Value, r.Target))+8, y+13, fraction(r.Value))
		if r.Target > 0 {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000" stroke-width="2"/>`+"\n", x(r.Target), x(r.Target), y-3, y+plotRow-5)
		}
		y += plotRow
	}
	b.WriteString("</svg>\n")
	return b.String()
}
