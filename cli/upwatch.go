package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest"
)

// checkWatch refuses what --watch cannot be with.
func checkWatch(c *cli.Context, files []string) error {
	switch {
	case !c.Bool("watch"):
		return nil
	case c.Bool("detach"):
		return usageErrorf("up", "--watch is for the foreground: with -d nobody would be there to look")
	}
	for _, file := range files {
		if file == "-" || isAddress(file) {
			return usageErrorf("up", "--watch looks at files: %s is none", shown(file))
		}
	}
	return nil
}

// renewal lets the foreground go on with the pod that --watch makes in the place of one that it
// shows. The nil renewal is of a pod that is not watched.
type renewal struct {
	mu     sync.Mutex
	busy   chan struct{} // closed when the replacement that is under way is done; nil: there is none
	next   *upPod        // what it has made, until the foreground takes it
	leave  func()        // ends the showing of the pod before it
	closed bool          // the pod is being stopped: no other follows
}

// begin announces a replacement, unless the pod is being stopped.
func (r *renewal) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.busy = make(chan struct{})
	}
	return !r.closed
}

// end announces its result; nil if there is none.
func (r *renewal) end(next *upPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = next
	close(r.busy)
	r.busy = nil
	if next != nil && r.leave != nil { // what the place holds now is another pod's
		r.leave()
	}
}

// show gives the context in which the pod that is there now is shown.
func (r *renewal) show(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, leave := context.WithCancel(ctx)
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.leave = leave
	}
	return ctx, leave
}

// close lets no other replacement begin, and returns the one that is under way, or nil.
func (r *renewal) close() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.busy
}

// take waits for the replacement that is under way, and returns the pod that it has made, or nil.
func (r *renewal) take() *upPod {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	busy := r.busy
	r.mu.Unlock()
	if busy != nil {
		<-busy
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	return next
}

// fileWatch applies manifests again whenever their files change.
type fileWatch struct {
	front *front
	c     *cli.Context
	files []string
	shown []*upPod // the pods in the foreground
	makes []store.Workload
	texts []source // as they were applied last
}

// begin starts to look. end returns when nothing is done any more.
func (w *fileWatch) begin() (end func(), err error) {
	if w.texts, err = w.front.readAll(w.files); err != nil {
		return nil, err
	}
	for _, p := range w.shown {
		p.renewal = &renewal{}
	}
	ctx, cancel := context.WithCancel(w.c.Context)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

func (w *fileWatch) run(ctx context.Context) {
	var dirs []string
	for _, file := range w.files {
		dirs = append(dirs, file, filepath.Dir(file)) // of which one is a directory
	}
	watcher := dirwatch.Watch(dirs...)
	defer watcher.Close()
	for {
		w.look(ctx)
		select {
		case <-watcher.Any():
		case <-ctx.Done():
			return
		}
	}
}

// look applies what has changed since it looked last. A file that is just being written
// is looked at again when it is whole: that changes it once more.
func (w *fileWatch) look(ctx context.Context) {
	texts, err := w.front.readAll(w.files)
	if err != nil {
		return // an editor puts another in its place
	}
	var changed []string
	for i, t := range texts {
		if i >= len(w.texts) || w.texts[i].name != t.name || !bytes.Equal(w.texts[i].data, t.data) {
			changed = append(changed, t.name)
		}
	}
	if len(changed) == 0 && len(texts) == len(w.texts) {
		return
	}
	w.texts = texts
	for _, name := range changed {
		fmt.Fprintf(w.front.err, "podrun: %s has changed\n", report.Escape(name))
	}
	if err := w.apply(ctx); err != nil && ctx.Err() == nil {
		report.Print(w.front.err, err)
	}
}

// apply brings what has changed to the pods in the foreground, and keeps the objects.
func (w *fileWatch) apply(ctx context.Context) error {
	l, _, err := w.front.newLaunch(w.c, w.files)
	if err != nil {
		return err
	}
	defer l.release()
	l.pods = slices.DeleteFunc(l.pods, func(p *upPod) bool {
		in := slices.ContainsFunc(w.shown, func(s *upPod) bool { return s.place == p.place })
		switch {
		case !in:
			fmt.Fprintf(w.front.err, "podrun: pod %s is new: podrun up runs it\n", p.place.Name)
		case !p.place.Alive():
			fmt.Fprintf(w.front.err, "podrun: pod %s has ended: it is not changed\n", p.place.Name)
		}
		return !in || !p.place.Alive()
	})
	l.workloads = slices.DeleteFunc(l.workloads, func(o manifest.Object) bool {
		in := slices.ContainsFunc(w.makes, func(p store.Workload) bool {
			return p.Kind == o.Stored.Kind && p.Namespace == o.Stored.Namespace && p.Name == o.Stored.Name
		})
		if !in {
			fmt.Fprintf(w.front.err, "podrun: %s is new: podrun up runs it\n", nameOf(o.Stored))
		}
		return !in
	})
	if err := l.prepare(ctx); err != nil {
		return err
	}
	replaced := w.announce(l)
	err = l.start()
	for p, r := range replaced {
		if p.started {
			r.end(p)
		} else {
			r.end(nil)
		}
	}
	for _, p := range l.started() {
		word := "unchanged"
		if p.change != nil {
			word = "configured"
		}
		if p.replaces {
			word = "replaced"
		}
		_, werr := fmt.Fprintf(w.front.err, "podrun: pod/%s %s\n", p.place.Name, word)
		err = errors.Join(err, werr)
	}
	return err
}

// announce announces to the foreground which pods are replaced. One that is being stopped is not.
func (w *fileWatch) announce(l *launch) map[*upPod]*renewal {
	list := map[*upPod]*renewal{}
	l.pods = slices.DeleteFunc(l.pods, func(p *upPod) bool {
		if !p.replaces {
			return false
		}
		i := slices.IndexFunc(w.shown, func(s *upPod) bool { return s.place == p.place })
		if !w.shown[i].renewal.begin() {
			return true
		}
		p.renewal = w.shown[i].renewal
		list[p] = p.renewal
		return false
	})
	return list
}
