package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot has a row for each ratio, on a logarithmic scale from 1/200 to 20.
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

// plot draws ratios: a bar from 1 to the left means that podrun is faster or smaller by that
// factor.
func plot(title string, list []ratio) string {
	var b strings.Builder
	height := plotTop + plotRow*len(list) + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotLeft+plotRight+70, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="20" font-size="15">%s</text>`+"\n", html.EscapeString(title))
	for _, tick := range []float64{1. / 100, 1. / 10, 1, 10} {
		x := plotX(tick)
		fmt.Fprintf(&b, `<line x1="%.0f" x2="%.0f" y1="%d" y2="%d" stroke="#ccc"/><text x="%.0f" y="%d" text-anchor="middle" fill="#666">%s</text>`+"\n",
			x, x, plotTop-8, height-20, x, plotTop-14, fraction(tick))
	}
	for i, r := range list {
		y := plotTop + plotRow*i
		from, to := min(plotX(1), plotX(r.Value)), max(plotX(1), plotX(r.Value))
		fill := "#4a7" // reached, or without a target
		if r.Target > 0 && r.Value > r.Target {
			fill = "#d83"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			plotLeft-8, y+12, html.EscapeString(r.Name), from, y, max(to-from, 1), plotRow-8, fill, plotLeft+plotRight+6, y+12, fraction(r.Value))
		if r.Target > 0 {
			x := plotX(r.Target)
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000" stroke-width="2"/>`+"\n", x, x, y-3, y+plotRow-5)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
