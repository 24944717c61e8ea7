package cli

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
)

// watch shows the events there are, and then each that comes, as it comes.
func (v *eventView) watch(ctx context.Context, places []store.Pod) error {
	seen := map[string]int32{} // how often each was counted when it was shown
	for {
		dirs, err := v.watched(places)
		if err != nil {
			return err
		}
		places, err = v.watchDirs(ctx, places, dirs, seen)
		if err != nil || ctx.Err() != nil || len(places) == 0 && len(v.words) > 0 {
			return err
		}
	}
}

// watched are the directories in which something changes when there is news.
func (v *eventView) watched(places []store.Pod) (dirs []string, err error) {
	if len(v.words) == 0 {
		if dirs, err = v.dirs.WatchDirs(); err != nil {
			return nil, err
		}
	}
	for _, p := range places {
		dirs = append(dirs, p.RuntimeDir(), p.DataDir())
	}
	return dirs, nil
}

// watchDirs shows events as they come, until other pods or other directories are to
// be watched, and returns the pods.
func (v *eventView) watchDirs(ctx context.Context, places []store.Pod, dirs []string, seen map[string]int32) ([]store.Pod, error) {
	watcher := dirwatch.Watch(dirs...)
	defer watcher.Close()
	for {
		// Everything is looked at once more after the watching has begun: nothing that
		// happened in between is missed.
		now, err := v.remaining(slices.Clone(places))
		if err != nil {
			return nil, err
		}
		all, err := v.read(now)
		if err == nil {
			err = v.printNews(all, seen)
		}
		if err != nil {
			return nil, err
		}
		if current, err := v.watched(now); err != nil || !slices.Equal(now, places) || !slices.Equal(current, dirs) {
			return now, err
		}
		select {
		case <-watcher.Any():
		case <-ctx.Done():
			return now, nil
		}
	}
}

// remaining are the pods to go on with.
func (v *eventView) remaining(places []store.Pod) ([]store.Pod, error) {
	if len(v.words) == 0 {
		return v.places()
	}
	return slices.DeleteFunc(places, func(p store.Pod) bool { return !p.Exists() }), nil
}

// printNews shows what is new in events, or was counted again, and forgets what they
// have dropped.
func (v *eventView) printNews(all []corev1.Event, seen map[string]int32) error {
	var news []corev1.Event
	current := map[string]int32{}
	for _, e := range all {
		key := e.Namespace + "/" + e.Name
		if current[key] = e.Count; seen[key] != e.Count {
			news = append(news, e)
		}
	}
	clear(seen)
	for key, n := range current {
		seen[key] = n
	}
	if len(news) == 0 {
		return nil
	}
	if v.format != "json" && v.format != "yaml" {
		return v.printRows(news)
	}
	for i := range news {
		text, err := printers.PrintEvent(&news[i], printers.Format(v.format))
		if err != nil {
			return err
		}
		if v.format == "yaml" {
			fmt.Fprintln(v.front.out, "---")
		}
		if err := v.front.show(text); err != nil {
			return err
		}
	}
	return nil
}

// untilInterrupted watches something until the user ends it, or does not read what is
// shown any more.
func (f *front) untilInterrupted(ctx context.Context, watch func(context.Context) error) error {
	signals, quiet := f.signals(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer quiet()
	return interruptible(ctx, signals, func(ctx context.Context) error { return whileRead(ctx, f.out, watch) })
}
