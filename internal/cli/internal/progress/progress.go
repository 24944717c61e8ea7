// Package progress prints the progress of what takes longer than a second: bars for the layers of images,
// and a line for other waits.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
)

// Bars prints the progress of images to stderr: on a terminal a bar for every layer, elsewhere one line
// when the first layer of an image is fetched and one when the image is complete. While there is no bar, it
// displays on a terminal what the command waits for.
type Bars struct {
	out   io.Writer
	verb  string // the operation on an image
	width int    // of the terminal; 0 if it is none
	now   func() time.Time

	mu     sync.Mutex
	wait   string // what the command waits for, since began; "" if it is unknown
	began  time.Time
	ended  chan struct{} // ends redrawUntil; nil if that does not run
	images map[string]*imageState
	layers []*layerBar // in the order of their first event
	byID   map[string]*layerBar
	drawn  int // lines on the screen
	last   time.Time
}

// imageState is an image whose layers are being fetched.
type imageState struct {
	layers   map[string]int64 // bytes by layer
	started  bool
	lastLine time.Time // when the last line of progress was printed
}

type layerBar struct {
	image string
	image.Progress
	speed speed
}

// redraw is the least interval between two redraws of the bars.
const redraw = 100 * time.Millisecond

// waitAfter is how long a wait lasts before it is displayed, and the interval between its redraws.
const waitAfter = time.Second

// New returns bars on stderr. verb is the operation on the images; "" if there are none.
func New(env *cmdutil.Env, verb string) *Bars {
	p := &Bars{out: env.ErrOut, verb: verb, now: time.Now, images: map[string]*imageState{}, byID: map[string]*layerBar{}}
	if file, ok := tty.File(env.ErrOut); ok && env.Getenv("TERM") != "dumb" {
		p.width, _ = tty.Size(file)
	}
	return p
}

// Wait sets what the command waits for, until the next Wait or End.
func (p *Bars) Wait(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width == 0 {
		return
	}
	p.wait, p.began = fmt.Sprintf(format, args...), p.now()
	if p.ended == nil {
		p.ended = make(chan struct{})
		go p.redrawUntil(p.ended)
	}
}

// redrawUntil redraws at intervals until ended is closed.
func (p *Bars) redrawUntil(ended chan struct{}) {
	tick := time.NewTicker(waitAfter)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// Write writes other output of the command, above what is displayed next.
func (p *Bars) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return p.out.Write(text)
}

// Update records the progress of a layer.
func (p *Bars) Update(e image.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.images[e.Image]
	if in == nil {
		in = &imageState{layers: map[string]int64{}}
		p.images[e.Image] = in
	}
	if e.Status == image.Fetching || e.Status == image.Done {
		in.layers[e.Layer] = e.Done
		if p.width == 0 {
			p.printLine(in, e.Image)
		}
		in.started = true
	}
	if p.width == 0 {
		return
	}
	key := e.Image + " " + e.Layer
	bar := p.byID[key]
	if bar == nil {
		if e.Status == image.Exists {
			return
		}
		bar = &layerBar{image: e.Image}
		p.byID[key] = bar
		p.layers = append(p.layers, bar)
	}
	changed := bar.Status != e.Status
	bar.Progress = e
	now := p.now()
	bar.speed.add(now, e.Done)
	if changed || now.Sub(p.last) >= redraw {
		p.draw()
	}
}

// lineInterval is the interval of progress lines where there are no bars.
const lineInterval = time.Minute

func (p *Bars) printLine(in *imageState, name string) {
	now := p.now()
	switch {
	case !in.started:
		fmt.Fprintf(p.out, "podrun: %s %s\n", p.verb, report.Escape(name))
	case now.Sub(in.lastLine) < lineInterval:
		return
	default:
		var bytes int64
		for _, n := range in.layers {
			bytes += n
		}
		fmt.Fprintf(p.out, "podrun: %s %s: %s so far\n", p.verb, report.Escape(name), Size(bytes))
	}
	in.lastLine = now
}

// Done reports that an image is complete.
func (p *Bars) Done(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.images[name]
	if in == nil || !in.started {
		return
	}
	var bytes int64
	for _, n := range in.layers {
		bytes += n
	}
	p.clear()
	fmt.Fprintf(p.out, "podrun: fetched %s: %s\n", report.Escape(name), Size(bytes))
	var rest []*layerBar
	for _, bar := range p.layers {
		if bar.image != name {
			rest = append(rest, bar)
		}
	}
	p.layers = rest
	p.draw()
}

// End removes unfinished bars, and what the command waits for, from the screen.
func (p *Bars) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.layers, p.wait = nil, ""
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

func (p *Bars) clear() {
	if p.drawn > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn) // up, and erase what is below
		p.drawn = 0
	}
}

func (p *Bars) draw() {
	if p.width == 0 {
		return
	}
	p.clear()
	p.last = p.now()
	var lines []string
	for _, bar := range p.layers {
		lines = append(lines, bar.line(p.width))
	}
	if d := p.last.Sub(p.began); len(lines) == 0 && p.wait != "" && d >= waitAfter {
		lines = append(lines, cut("podrun: "+report.Escape(p.wait)+": "+eta(d), p.width))
	}
	if p.drawn = len(lines); p.drawn > 0 {
		io.WriteString(p.out, strings.Join(lines, "\n")+"\n")
	}
}

// cut cuts a line to less than a terminal's width.
func cut(line string, width int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(width-1, 0))])
}

// line returns "busybox:1.36 4a1b… [=====>    ] 12.3 MB/45 MB 3.1 MB/s 11s", cut to width. It first
// shortens the name from the left, keeping a part of it, then drops the speed.
func (l *layerBar) line(width int) string {
	const bar, leastName = 20, 12
	var right, quick string
	switch {
	case l.Status == image.Fetching && l.Total > 0:
		n := int(min(l.Done, l.Total) * bar / l.Total)
		right = fmt.Sprintf("[%-*s] %s/%s", bar, strings.Repeat("=", n), Size(l.Done), Size(l.Total))
		quick = l.speed.text(l.Total - l.Done)
	case l.Status == image.Fetching:
		right, quick = Size(l.Done), l.speed.text(-1)
	default:
		right = string(l.Status)
	}
	right = fmt.Sprintf(" %.12s ", strings.TrimPrefix(l.Layer, "sha256:")) + right
	name := []rune(report.Escape(l.image))
	if width-1-len(right+quick) >= min(len(name), leastName) {
		right += quick
	}
	if room := width - 1 - len(right); len(name) > room {
		name = append([]rune("…"), name[len(name)-max(room-1, 0):]...)
	}
	return cut(string(name)+right, width)
}

// Size formats a number of bytes: 512 B, 3.4 kB, 12 MB.
func Size(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, u := float64(n), 0
	for v >= 999.5 && u < len(units)-1 {
		v, u = v/1000, u+1
	}
	if v >= 10 || u == 0 {
		return fmt.Sprintf("%.0f %s", v, units[u])
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}
