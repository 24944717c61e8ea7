package webui

import "encoding/json"

// maxPoints is a quarter of an hour at two seconds each.
const maxPoints = 450

// point is the usage at a moment.
type point struct {
	at          float64 // seconds since the start of the command
	cpu, memory *int64
}

// MarshalJSON encodes [at, cpu, memory]: a page that is opened gets many points.
func (p point) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.at, p.cpu, p.memory}) }

// ring holds the last points of a pod.
type ring struct {
	all  []point
	next int // index of the oldest, once there are maxPoints
}

func (r *ring) add(p point) {
	if len(r.all) < maxPoints {
		r.all = append(r.all, p)
		return
	}
	r.all[r.next] = p
	r.next = (r.next + 1) % maxPoints
}

// points returns a copy, the oldest first.
func (r *ring) points() []point {
	return append(append(make([]point, 0, len(r.all)), r.all[r.next:]...), r.all[:r.next]...)
}
