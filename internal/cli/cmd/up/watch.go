package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/cli/internal/filesync"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/podup"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/cli/internal/upplan"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
)

// fileWatcher applies manifests again whenever their files change.
type fileWatcher struct {
	*runOptions
	shown     []*podup.Target // the pods that the foreground shows
	workloads []store.Workload
	texts     []resource.Source // as last applied
	applying  sync.Mutex
	failure   string // why the files could not be read last; "": they could
}

// watchFiles starts watching the files. end stops it and returns when no work is left.
func (f *foregroundHooks) watchFiles(ctx context.Context) (end func(), err error) {
	w := &fileWatcher{runOptions: &f.runOptions, shown: f.run.Started(), workloads: f.run.WorkloadRefs()}
	if w.texts, err = resource.ReadFiles(w.env, w.files); err != nil {
		return nil, err
	}
	for _, p := range w.shown {
		p.Successor = &podup.Successor{}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	rules := w.syncOf(w.shown)
	if slices.ContainsFunc(rules, func(r filesync.Rule) bool { return r.Action == api.SyncRebuild }) {
		w.env.Compose.Recreate = cmdutil.RecreateChanged
	}
	go func() {
		defer close(done)
		var all sync.WaitGroup
		all.Go(func() { filesync.Run(ctx, w.env, rules, w.rebuild) })
		w.watch(ctx)
		all.Wait()
	}()
	return func() { cancel(); <-done }, nil
}

func (w *fileWatcher) watch(ctx context.Context) {
	var dirs []string
	for _, file := range w.files {
		dirs = append(dirs, file, filepath.Dir(file)) // file, if it is a directory; else the directory that contains it
	}
	watcher := dirwatch.Watch(dirs...)
	defer watcher.Close()
	for {
		w.applyChanges(ctx)
		select {
		case <-watcher.Any():
		case <-ctx.Done():
			return
		}
	}
}

// applyChanges applies the changes since the last call. A file that is only partly written is read again when it
// is complete, because that is another change.
func (w *fileWatcher) applyChanges(ctx context.Context) {
	texts, err := resource.ReadFiles(w.env, w.files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // an editor is replacing the file
	case err != nil:
		if text := err.Error(); text != w.failure {
			w.failure = text
			report.Print(w.env.ErrOut, err)
		}
		return
	}
	w.failure = ""
	var changed []string
	for i, t := range texts {
		if i >= len(w.texts) || w.texts[i].Name != t.Name || !bytes.Equal(w.texts[i].Data, t.Data) {
			changed = append(changed, t.Name)
		}
	}
	if len(changed) == 0 && len(texts) == len(w.texts) {
		return
	}
	w.texts = texts
	for _, name := range changed {
		fmt.Fprintf(w.env.ErrOut, "podrun: %s has changed\n", report.Escape(name))
	}
	if err := w.apply(ctx); err != nil && ctx.Err() == nil {
		report.Print(w.env.ErrOut, err)
	}
}

// apply stores the changed objects and updates the pods in the foreground.
func (w *fileWatcher) apply(ctx context.Context) error {
	w.applying.Lock()
	defer w.applying.Unlock()
	run, _, err := w.load(ctx)
	if err != nil {
		return err
	}
	defer run.Release()
	run.Targets = slices.DeleteFunc(run.Targets, func(p *podup.Target) bool {
		in := slices.ContainsFunc(w.shown, func(s *podup.Target) bool { return s.Pod == p.Pod })
		switch {
		case !in:
			fmt.Fprintf(w.env.ErrOut, "podrun: pod %s is new and is not started: run podrun up again to start it\n", p.Pod.Name)
		case !runs(p):
			fmt.Fprintf(w.env.ErrOut, "podrun: pod %s has ended: it is not changed\n", p.Pod.Name)
		}
		return !in || !runs(p)
	})
	run.Workloads = slices.DeleteFunc(run.Workloads, func(o manifest.Object) bool {
		in := slices.ContainsFunc(w.workloads, func(p store.Workload) bool {
			return p.Kind == o.Stored.Kind && p.Namespace == o.Stored.Namespace && p.Name == o.Stored.Name
		})
		if !in {
			fmt.Fprintf(w.env.ErrOut, "podrun: %s is new and is not started: run podrun up again to start it\n", kindnames.Display(o.Stored))
		}
		return !in
	})
	if err := run.Prepare(ctx); err != nil {
		return err
	}
	replaced := w.announce(run)
	err = run.Start()
	for p, r := range replaced {
		if p.Started {
			r.End(p)
		} else {
			r.End(nil)
		}
	}
	for _, p := range run.Started() {
		word := "unchanged"
		switch p.Action {
		case upplan.Change:
			word = "configured"
		case upplan.Replace:
			word = "replaced"
		}
		_, werr := fmt.Fprintf(w.env.ErrOut, "podrun: pod/%s %s\n", p.Pod.Name, word)
		err = errors.Join(err, werr)
	}
	return err
}

// runs reports whether a pod is alive and no command stops it.
func runs(p *podup.Target) bool { return p.Pod.Alive() && !podclient.IsEnding(p.Pod) }

// announce reports to the foreground which pods are replaced. A pod that is being stopped is not
// replaced.
func (w *fileWatcher) announce(run *podup.Run) map[*podup.Target]*podup.Successor {
	list := map[*podup.Target]*podup.Successor{}
	run.Targets = slices.DeleteFunc(run.Targets, func(p *podup.Target) bool {
		if p.Action != upplan.Replace {
			return false
		}
		i := slices.IndexFunc(w.shown, func(s *podup.Target) bool { return s.Pod == p.Pod })
		if !w.shown[i].Successor.Begin() {
			return true
		}
		p.Successor = w.shown[i].Successor
		list[p] = p.Successor
		return false
	})
	return list
}
