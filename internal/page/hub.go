package page

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// hub looks for all pages that are open, and not at all while none is. What it has seen of
// use it keeps, for those that are opened later.
type hub struct {
	source Source
	every  time.Duration
	host   string
	begun  time.Time

	mu      sync.Mutex
	pages   int
	stop    context.CancelFunc
	work    *sync.WaitGroup // what stop ends
	news    chan struct{}   // closed when there is something new
	looked  bool            // since the first page was opened
	version int             // of everything below; each change gets the next one
	things  map[string]versioned
	came    int // the version in which something came or went
	problem string
	history map[string]*ring
	use     usage
}

// versioned is a thing, and when it became what it is.
type versioned struct {
	Thing
	version int
}

// usage is what is used at a moment.
type usage struct {
	version int
	at      float64
	pods    []any
}

// join makes the hub look, until leave is called.
func (h *hub) join() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pages++; h.pages == 1 {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.looked, h.news = false, make(chan struct{})
		h.work = &sync.WaitGroup{}
		h.work.Go(func() {
			h.source.Watch(ctx, func(all []Thing, problem string) { h.saw(ctx, all, problem) })
		})
		h.work.Go(func() { h.sample(ctx) })
	}
	return func() {
		h.mu.Lock()
		h.pages--
		last, work := h.pages == 0, h.work
		if last {
			h.stop()
		}
		h.mu.Unlock()
		if last {
			work.Wait()
		}
	}
}

// tell ends what every page waits for. h.mu is held.
func (h *hub) tell() {
	close(h.news)
	h.news = make(chan struct{})
}

// saw takes what there is now.
func (h *hub) saw(ctx context.Context, all []Thing, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.version++
	now := make(map[string]versioned, len(all))
	changed := problem != h.problem || !h.looked
	for _, t := range all {
		key := t.Kind + " " + t.Key
		old, was := h.things[key]
		switch {
		case !was:
			h.came, changed = h.version, true
		case bytes.Equal(old.JSON, t.JSON):
			now[key] = old
			continue
		}
		now[key], changed = versioned{t, h.version}, true
	}
	for key := range h.things {
		if _, is := now[key]; !is {
			h.came, changed = h.version, true
		}
	}
	h.things, h.problem, h.looked = now, problem, true
	h.forget()
	if changed {
		h.tell()
	}
}

// sample looks what is used, again and again: nothing tells of that.
func (h *hub) sample(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		if used, err := h.source.Use(); err == nil {
			h.used(ctx, used)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *hub) used(ctx context.Context, used []Use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.version++
	h.use = usage{version: h.version, at: time.Since(h.begun).Seconds(), pods: []any{}}
	if h.history == nil {
		h.history = map[string]*ring{}
	}
	for _, u := range used {
		h.use.pods = append(h.use.pods, u.Detail)
		if h.history[u.Key] == nil {
			h.history[u.Key] = &ring{}
		}
		h.history[u.Key].add(point{h.use.at, u.CPU, u.Memory})
	}
	h.tell()
}

// forget drops the history of pods that are gone. h.mu is held.
func (h *hub) forget() {
	for key := range h.history {
		if _, is := h.things["pods "+key]; !is {
			delete(h.history, key)
		}
	}
}

// update is what is new for a page. What has not changed is left out.
type update struct {
	Host    string             `json:"host,omitempty"`
	Now     time.Time          `json:"now"`               // by the machine's clock
	At      float64            `json:"at"`                // seconds since the command was begun
	Every   float64            `json:"every,omitempty"`   // seconds between looks at what is used
	Problem *string            `json:"problem,omitempty"` // with keys
	Pods    *things            `json:"pods,omitempty"`
	Events  *things            `json:"events,omitempty"`
	Use     *[]any             `json:"use,omitempty"` // may be empty
	UsedAt  float64            `json:"usedAt,omitempty"`
	History map[string][]point `json:"history,omitempty"` // of all pods, to a page that has just been opened
}

// things are those of a kind that have changed, and the keys of all.
type things struct {
	Keys    []string                   `json:"keys"`
	Changed map[string]json.RawMessage `json:"changed"`
}

// since gives what has changed since a version, nil if nothing has, the version of now, and
// what ends when there is more.
func (h *hub) since(last int) (u *update, version int, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.looked {
		return nil, last, h.news
	}
	if h.version == last {
		return nil, last, h.news
	}
	u = &update{Now: time.Now(), At: time.Since(h.begun).Seconds()}
	if last == 0 {
		u.Host, u.Every = h.host, h.every.Seconds()
		u.History = map[string][]point{}
		for key, r := range h.history {
			u.History[key] = r.points()
		}
	}
	used, problem := h.use, h.problem // they are read when h.mu is not held any more
	if used.version > last {
		u.Use, u.UsedAt = &used.pods, used.at
	}
	u.Problem, u.Pods, u.Events = &problem, h.thingsSince("pods", last), h.thingsSince("events", last)
	return u, h.version, h.news
}

// thingsSince are the things of a kind, nil if nothing is new. h.mu is held.
func (h *hub) thingsSince(kind string, last int) *things {
	t := &things{Keys: []string{}, Changed: map[string]json.RawMessage{}}
	for _, v := range h.things {
		if v.Kind != kind {
			continue
		}
		t.Keys = append(t.Keys, v.Key)
		if v.version > last {
			t.Changed[v.Key] = v.JSON
		}
	}
	if len(t.Changed) == 0 && h.came <= last && last > 0 {
		return nil
	}
	slices.Sort(t.Keys)
	return t
}
