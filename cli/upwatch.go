package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/report"
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

func errWatchesPods() error {
	return report.New(report.Usage, "podrun apply -f FILE changes workloads that run", "--watch is for pods, and what they refer to")
}

// fileWatch applies manifests again whenever their files change.
type fileWatch struct {
	front *front
	c     *cli.Context
	files []string
	shown []*upPod // the pods in the foreground
	texts []source // as they were applied last
}

// begin starts to look. end returns when nothing is done any more.
func (w *fileWatch) begin() (end func(), err error) {
	if w.texts, err = w.front.readAll(w.files); err != nil {
		return nil, err
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
	if len(l.workloads) > 0 {
		return errWatchesPods()
	}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	err = l.start()
	for _, p := range l.started() {
		word := "unchanged"
		if p.change != nil {
			word = "configured"
		}
		_, werr := fmt.Fprintf(w.front.err, "podrun: pod/%s %s\n", p.place.Name, word)
		err = errors.Join(err, werr)
	}
	return err
}
