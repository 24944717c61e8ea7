package events

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/cli/internal/dirwatch"
	"github.com/podrun/podrun/cli/internal/podevents"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/manifest/printers"
)

// watch prints the existing events, and then each new one.
func watch(v *podevents.View, ctx context.Context, places []store.Pod) error {
	seen := map[string]int32{} // the count of each event when it was printed
	for {
		dirs, err := watched(v, places)
		if err != nil {
			return err
		}
		places, err = watchDirs(v, ctx, places, dirs, seen)
		if err != nil || ctx.Err() != nil || len(places) == 0 && len(v.Words) > 0 {
			return err
		}
	}
}

// watched returns the directories in which new events or pods appear.
func watched(v *podevents.View, places []store.Pod) (dirs []string, err error) {
	if len(v.Words) == 0 {
		if dirs, err = v.Dirs.WatchDirs(); err != nil {
			return nil, err
		}
	}
	for _, p := range places {
		dirs = append(dirs, p.RuntimeDir(), p.DataDir())
	}
	return dirs, nil
}

// watchDirs prints new events until the set of pods or directories changes, and returns the pods.
func watchDirs(v *podevents.View, ctx context.Context, places []store.Pod, dirs []string, seen map[string]int32) ([]store.Pod, error) {
	watcher := dirwatch.Watch(dirs...)
	defer watcher.Close()
	for {
		// Read everything once more after the watch has started, so that no change in between is missed.
		now, err := remaining(v, slices.Clone(places))
		if err != nil {
			return nil, err
		}
		all, err := v.Read(now)
		if err == nil {
			err = printChanges(v, all, seen)
		}
		if err != nil {
			return nil, err
		}
		if current, err := watched(v, now); err != nil || !slices.Equal(now, places) || !slices.Equal(current, dirs) {
			return now, err
		}
		select {
		case <-watcher.Any():
		case <-ctx.Done():
			return now, nil
		}
	}
}

// remaining returns the pods that are still watched.
func remaining(v *podevents.View, places []store.Pod) ([]store.Pod, error) {
	if len(v.Words) == 0 {
		return v.Pods()
	}
	return slices.DeleteFunc(places, func(p store.Pod) bool { return !p.Exists() }), nil
}

// printChanges prints events that are new or have a higher count, and removes dropped ones from seen.
func printChanges(v *podevents.View, all []corev1.Event, seen map[string]int32) error {
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
	if v.Format != "json" && v.Format != "yaml" {
		return printRows(v, news)
	}
	for i := range news {
		text, err := printers.PrintEvent(&news[i], printers.Format(v.Format))
		if err != nil {
			return err
		}
		if v.Format == "yaml" {
			fmt.Fprintln(v.Env.Out, "---")
		}
		if err := v.Env.WriteSafe(text); err != nil {
			return err
		}
	}
	return nil
}
