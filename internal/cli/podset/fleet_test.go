package podset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podrun/podrun/internal/golden"
	"github.com/podrun/podrun/internal/store"
)

// The fleet of the picture. Times are in seconds.
const (
	simBoxes    = 10_000
	simCanaries = simBoxes / 100
	simEvery    = 900 // OnUnitInactiveSec=
	simDelay    = 90  // RandomizedDelaySec=
	simChange   = 30  // from a look to the end of a change
	simFailure  = 330 // from a look to the end of a change that fails, with the way back
	simEnd      = 240 * 60

	goodCanary, goodStable, badCanary = 60 * 60, 120 * 60, 180 * 60 // when tags are moved
)

// simulation is what the registry and the boxes see in each second.
type simulation struct {
	heads, runsGood [simEnd]int
	good, bad       int // how often each version was tried
	lastGood        int // when the last box runs it
}

// tag returns the version of a ring at a time, as a digest.
func tag(canary bool, now int) string {
	switch {
	case canary && now >= badCanary:
		return "bad"
	case canary && now >= goodCanary, now >= goodStable:
		return "good"
	}
	return "first"
}

// follow is the life of a box: podset's decisions with a fake clock.
func (s *simulation) follow(random *rand.Rand, canary bool) {
	made := map[string]time.Time{"first": time.Unix(1, 0), "good": time.Unix(2, 0), "bad": time.Unix(3, 0)}
	set := &store.Set{State: store.SetSettled, Boot: "b", Current: &store.SetVersion{Digest: "first", Created: made["first"]}}
	for now := random.IntN(simEvery + simDelay); now < simEnd; now += simEvery + random.IntN(simDelay+1) {
		if decide(set, "b", nil, Rules{}) != StepLook {
			panic("a settled set is not looked at")
		}
		s.heads[now]++
		found := Found{Digest: tag(canary, now), Signed: true}
		if decide(set, "b", &found, Rules{}) != StepTry {
			continue
		}
		found.Fetched, found.Created = true, made[found.Digest]
		if decide(set, "b", &found, Rules{}) != StepTry {
			panic("a fetched version is not tried")
		}
		version := &store.SetVersion{Digest: found.Digest, Created: found.Created}
		if found.Digest == "bad" {
			s.bad++
			now += simFailure
			set.Reject(version, set.Current, "not ready", time.Unix(int64(now), 0))
			continue
		}
		s.good++
		now += simChange
		set.Current = version
		s.lastGood = max(s.lastGood, now)
		for i := now; i < simEnd; i++ {
			s.runsGood[i]++
		}
	}
}

// TestFleet simulates 10,000 boxes in two rings, and draws the picture of docs/reference/fleet.md. Looks stay spread, each box
// changes once, and a version that is never ready is tried once by each canary.
func TestFleet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &simulation{}
	for i := range simBoxes {
		s.follow(random, i < simCanaries)
	}
	if s.good != simBoxes || s.bad != simCanaries {
		t.Errorf("the good version was tried %d times, the bad one %d times", s.good, s.bad)
	}
	if late := s.lastGood - goodStable; late > simEvery+simDelay+simChange {
		t.Errorf("the last box has changed after %d s", late)
	}
	if most := slices.Max(s.heads[:]); most > 3*simBoxes/simEvery {
		t.Errorf("%d looks in one second", most)
	}
	golden.Check(t, "../../../docs/reference/fleet.svg", s.picture())
}

// picture draws looks and the share of the good version over time.
func (s *simulation) picture() string {
	const left, width, top, height, gap = 60, 720, 70, 130, 60
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", left+width+30, top+2*height+gap+50)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="10" y="22" font-size="15">10,000 boxes that look every 15 minutes, with a random delay of up to 90 s</text>`+"\n")
	mean := 0
	for _, n := range s.heads {
		mean += n
	}
	panels := []struct {
		title, color string
		most         float64
		value        func(minute int) float64
	}{
		{fmt.Sprintf("HEAD requests in the busiest second of each minute (in the mean %.1f a second, at most %d)", float64(mean)/simEnd, slices.Max(s.heads[:])), "#47a", 30,
			func(minute int) float64 { return float64(slices.Max(s.heads[60*minute : 60*minute+60])) }},
		{fmt.Sprintf("%% of the boxes on the good version (all of them %d minutes after the tag stable was moved)", (s.lastGood-goodStable+59)/60), "#4a7", 100,
			func(minute int) float64 { return 100 * float64(s.runsGood[60*minute]) / simBoxes }},
	}
	x := func(second int) float64 { return left + width*float64(second)/simEnd }
	for i, p := range panels {
		bottom := top + height + i*(height+gap)
		y := func(v float64) float64 { return float64(bottom) - height*v/p.most }
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left, bottom-height-10, p.title)
		for _, v := range []float64{0, p.most / 2, p.most} {
			fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ccc"/><text x="%d" y="%.1f" text-anchor="end" fill="#666">%.0f</text>`+"\n", left, left+width, y(v), y(v), left-6, y(v)+4, v)
		}
		var points []string
		for minute := range simEnd / 60 {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(60*minute), y(p.value(minute))))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n", p.color, strings.Join(points, " "))
		for _, at := range []int{goodCanary, goodStable, badCanary} {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#d83" stroke-dasharray="4"/>`+"\n", x(at), x(at), bottom-height, bottom)
		}
	}
	bottom := top + 2*height + gap + 18
	for _, at := range []int{0, goodCanary, goodStable, badCanary} {
		text := map[int]string{0: "0 h", goodCanary: "1 h: canary (1 %)", goodStable: "2 h: stable", badCanary: "3 h: canary, never ready"}[at]
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#666">%s</text>`+"\n", x(at), bottom, text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
