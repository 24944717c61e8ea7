package webui

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// hub collects data for all open pages, and stops while none is open. It keeps the history of usage
// for pages that are opened later.
type hub struct {
	source Source
	every  time.Duration
	host   string
	now    func() time.Time
	begun  time.Time

	mu         sync.Mutex
	pages      int
	stop       context.CancelFunc
	work       *sync.WaitGroup // goroutines that stop ends
	changed    chan struct{}   // closed when there is something new
	populated  bool            // objects were read since the first page was opened
	version    int             // of everything below; each change increments it
	objects    map[string]versionedObject
	membership map[string]int // of each kind: the version of the last addition or removal
	problem    string
	history    map[string]*ring
	use        usage
}

// versionedObject is an object and the version of its last change.
type versionedObject struct {
	Object
	version int
}

// usage is the usage of all pods at a moment.
type usage struct {
	version int
	at      float64
	pods    []any
}

// join keeps the hub collecting until leave is called.
func (h *hub) join() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pages++; h.pages == 1 {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		h.populated, h.changed = false, make(chan struct{})
		h.work = &sync.WaitGroup{}
		h.work.Go(func() {
			h.source.Watch(ctx, func(all []Object, problem string) { h.setObjects(ctx, all, problem) })
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

// notify wakes all waiting pages. h.mu is held.
func (h *hub) notify() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// setObjects replaces the objects.
func (h *hub) setObjects(ctx context.Context, all []Object, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.version++
	now := make(map[string]versionedObject, len(all))
	changed := problem != h.problem || !h.populated
	for _, t := range all {
		key := t.Kind + " " + t.Key
		old, was := h.objects[key]
		switch {
		case !was:
			h.membership[t.Kind], changed = h.version, true
		case bytes.Equal(old.JSON, t.JSON):
			now[key] = old
			continue
		}
		now[key], changed = versionedObject{t, h.version}, true
	}
	for key, old := range h.objects {
		if _, is := now[key]; !is {
			h.membership[old.Kind], changed = h.version, true
		}
	}
	h.objects, h.problem, h.populated = now, problem, true
	h.pruneHistory()
	if changed {
		h.notify()
	}
}

// sample polls the usage, because no event reports it.
func (h *hub) sample(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		if used, err := h.source.Use(); err == nil {
			h.setUsage(ctx, used)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *hub) setUsage(ctx context.Context, used []Usage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.version++
	h.use = usage{version: h.version, at: h.now().Sub(h.begun).Seconds(), pods: []any{}}
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
	h.notify()
}

// pruneHistory drops the history of pods that are gone. h.mu is held.
func (h *hub) pruneHistory() {
	for key := range h.history {
		if _, is := h.objects["pods "+key]; !is {
			delete(h.history, key)
		}
	}
}

// update is what is new for a page, without unchanged parts.
type update struct {
	Host    string                   `json:"host,omitempty"`
	Now     time.Time                `json:"now"`               // of the server's clock
	At      float64                  `json:"at"`                // seconds since the start of the command
	Every   float64                  `json:"every,omitempty"`   // seconds between samples of usage
	Problem *string                  `json:"problem,omitempty"` // "" for none
	Objects map[string]*objectUpdate `json:"objects,omitempty"` // by kind
	Use     *[]any                   `json:"use,omitempty"`     // may be empty
	UsedAt  float64                  `json:"usedAt,omitempty"`
	History map[string][]point       `json:"history,omitempty"` // of all pods, for a page that has just been opened
}

// objectUpdate contains the changed objects of a kind, and the keys of all.
type objectUpdate struct {
	Keys    []string                   `json:"keys"`
	Changed map[string]json.RawMessage `json:"changed"`
}

// since returns what has changed after the version last (nil: nothing), the current version, and a
// channel that is closed at the next change.
func (h *hub) since(last int) (u *update, version int, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.populated {
		return nil, last, h.changed
	}
	if h.version == last {
		return nil, last, h.changed
	}
	u = &update{Now: h.now(), At: h.now().Sub(h.begun).Seconds()}
	if last == 0 {
		u.Host, u.Every = h.host, h.every.Seconds()
		u.History = map[string][]point{}
		for key, r := range h.history {
			u.History[key] = r.points()
		}
	}
	used, problem := h.use, h.problem // the caller reads them without h.mu
	if used.version > last {
		u.Use, u.UsedAt = &used.pods, used.at
	}
	u.Problem, u.Objects = &problem, h.objectsSince(last)
	return u, h.version, h.changed
}

// objectsSince returns the changed objects of the kinds with changes. h.mu is held.
func (h *hub) objectsSince(last int) map[string]*objectUpdate {
	changed := map[string]*objectUpdate{}
	add := func(kind string) {
		if changed[kind] == nil {
			changed[kind] = &objectUpdate{Keys: []string{}, Changed: map[string]json.RawMessage{}}
		}
	}
	for kind, version := range h.membership {
		if version > last {
			add(kind)
		}
	}
	for _, v := range h.objects {
		if v.version > last {
			add(v.Kind)
			changed[v.Kind].Changed[v.Key] = v.JSON
		}
	}
	for _, v := range h.objects {
		if u := changed[v.Kind]; u != nil {
			u.Keys = append(u.Keys, v.Key)
		}
	}
	for _, u := range changed {
		slices.Sort(u.Keys)
	}
	return changed
}
